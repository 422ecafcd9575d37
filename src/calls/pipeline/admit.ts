/**
 * Accepts a call and reads its request, as far as billing and routing need it. The only place that decides whether a call
 * is accepted: model access, and whether the gateway accepts calls at all. The state of keys and accounts is checked in
 * core/access.ts.
 */
import { type Caller, requireActive } from "../../core/caller.ts";
import type { ModelConfig } from "../../config/config.ts";
import type { Catalogue } from "../catalogue.ts";
import type { CallAdapter, Chunk, ReadRequest } from "./adapter.ts";
import { Call } from "./call.ts";
import type { CallContext, PipelineDeps } from "./context.ts";

/** An admitted call: it counts as running until it is settled. */
export interface Admitted<Out extends Chunk> {
  readonly call: Call;
  readonly adapter: CallAdapter<Out>;
  readonly context: CallContext;
  readonly deps: PipelineDeps;
}

/** Admits a call, which then counts as running. @throws GatewayError SERVICE_UNAVAILABLE where it does not */
export function admit<Out extends Chunk>(
  adapter: CallAdapter<Out>,
  { callId, context, deps }: CallToAdmit,
): Admitted<Out> {
  deps.calls.enter();
  const { requestId, caller } = context;
  const { accountId, keyId, keyLimitNanos, discountBp = 0 } = caller;
  const { path } = adapter;
  const ids = { id: callId, requestId, accountId, keyId };
  const start = { ...ids, startMs: deps.clock.now(), keyLimitNanos, discountBp, path };
  return { call: new Call(start), adapter, context, deps };
}

/** A call to admit. */
export interface CallToAdmit {
  /** The gateway's id of the call, a UUIDv7. */
  readonly callId: string;
  readonly context: CallContext;
  readonly deps: PipelineDeps;
}

/**
 * Finds the model that the caller named.
 *
 * @throws GatewayError MODEL_NOT_FOUND where there is none, ACCESS_DENIED where the key may not use it
 */
export function admitModel(catalogue: Catalogue, caller: Caller, key: string): ModelConfig {
  return catalogue.authorize(caller, key);
}

/** As {@link admitModel}, for text generation. @throws GatewayError INVALID_REQUEST where the model generates no text */
export function admitTextModel(catalogue: Catalogue, caller: Caller, key: string): ModelConfig {
  return catalogue.authorizeText(caller, key);
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
  requireActive(caller);
  const request = readRequest(call, adapter);
  const { stream, model: key } = request.text;
  call.stream = stream;
  call.model = key;
  const find = adapter.acceptsAnyModel ? admitModel : admitTextModel;
  const model = find(deps.catalogue, caller, key);
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
