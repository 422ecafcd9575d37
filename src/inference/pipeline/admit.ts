/**
 * The only place that decides whether a call is taken: model access, and whether the gateway takes calls at all. Key and
 * account state: core/access.ts. Limits of rate, concurrency and budget belong here.
 */
import type { Caller } from "../../core/caller.ts";
import type { ModelConfig } from "../../config/config.ts";
import type { Catalogue } from "../catalogue.ts";
import type { CallAdapter, Chunk } from "./adapter.ts";
import { Call } from "./call.ts";
import type { CallContext, PipelineDeps } from "./context.ts";

/** A call that has begun: it counts as running until it is settled. */
export interface Admitted<Out extends Chunk> {
  readonly call: Call;
  readonly adapter: CallAdapter<Out>;
  readonly context: CallContext;
  readonly deps: PipelineDeps;
}

/** Admits a call that vendors are asked for at once. @throws GatewayError SERVICE_UNAVAILABLE, before it counts */
export function admit<Out extends Chunk>(
  adapter: CallAdapter<Out>,
  { callId, context, deps }: CallToAdmit,
): Admitted<Out> {
  deps.calls.enter();
  const { requestId, caller } = context;
  const { accountId, keyId, keyLimitNanos, discountBp = 0 } = caller;
  const { path } = adapter;
  const start = { id: callId, requestId, accountId, keyId, keyLimitNanos, discountBp, path };
  return { call: new Call(start), adapter, context, deps };
}

/** Who calls, and our id of the call. */
export interface CallToAdmit {
  /** A UUIDv7. */
  readonly callId: string;
  readonly context: CallContext;
  readonly deps: PipelineDeps;
}

/**
 * The model that the caller asks for.
 *
 * @throws GatewayError MODEL_NOT_FOUND where there is none, ACCESS_DENIED where the key may not use it
 */
export function admitModel(catalogue: Catalogue, caller: Caller, key: string): ModelConfig {
  return catalogue.authorize(caller, key);
}

/** As {@link admitModel}, for text generation. @throws GatewayError INVALID_REQUEST where the model makes no text */
export function admitTextModel(catalogue: Catalogue, caller: Caller, key: string): ModelConfig {
  return catalogue.authorizeText(caller, key);
}
