/**
 * Admits a call (see ../admission.ts) and reads its request, as far as billing and routing need it.
 */
import type { ModelConfig } from "../../config/config.ts";
import type { CallAdapter, Chunk, ReadRequest } from "./adapter.ts";
import { Call } from "./call.ts";
import { startTrace } from "./call-trace.ts";
import type { CallContext, PipelineDeps } from "./context.ts";

/** An admitted call: it counts as running until it is settled. */
export interface Admitted<Out extends Chunk> {
  readonly call: Call;
  readonly adapter: CallAdapter<Out>;
  readonly context: CallContext;
  readonly deps: PipelineDeps;
}

/**
 * Admits a call, which then counts as running. @throws GatewayError SERVICE_UNAVAILABLE if it does
 * not
 */
export function admit<Out extends Chunk>(
  adapter: CallAdapter<Out>,
  { callId, context, deps }: CallToAdmit,
): Admitted<Out> {
  deps.admission.enter();
  const { requestId, caller } = context;
  const { accountId, keyId, keyLimitNanos, discountBp = 0 } = caller;
  const { path } = adapter;
  const ids = { id: callId, requestId, accountId, keyId };
  const start = { ...ids, startMs: deps.clock.now(), keyLimitNanos, discountBp, path };
  const call = new Call(start);
  const { traceparent } = context;
  call.trace = startTrace(deps.traces, adapter, { ...ids, traceparent });
  return { call, adapter, context, deps };
}

/** A call to admit. */
export interface CallToAdmit {
  /** The gateway's id of the call, a UUIDv7. */
  readonly callId: string;
  readonly context: CallContext;
  readonly deps: PipelineDeps;
}

/** A call whose request has been read. */
export interface ReadCall<Out extends Chunk> extends Admitted<Out> {
  readonly request: ReadRequest<Out>;
  readonly model: ModelConfig;
}

/** Reads the request. A suspended account is refused first. @throws GatewayError */
export function read<Out extends Chunk>(admitted: Admitted<Out>): ReadCall<Out> {
  const { call, adapter, context, deps } = admitted;
  const { caller } = context;
  deps.admission.account(caller);
  const request = readRequest(call, adapter);
  const { stream, model: key } = request.text;
  call.stream = stream;
  call.model = key;
  const model = adapter.acceptsAnyModel
    ? deps.admission.model(caller, key)
    : deps.admission.textModel(caller, key);
  request.checkModel(model);
  return { ...admitted, request, model };
}

/** Reads the request. The call record of an invalid one still names its model. */
function readRequest<Out extends Chunk>(call: Call, adapter: CallAdapter<Out>): ReadRequest<Out> {
  try {
    return adapter.read();
  } catch (error) {
    call.model = adapter.modelName();
    throw error;
  }
}
