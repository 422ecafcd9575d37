/**
 * The only place that decides whether a call is accepted: model access, and whether the gateway accepts calls at all. The
 * state of keys and accounts is checked in core/access.ts. Limits of rate, concurrency and budget belong here.
 */
import type { Caller } from "../../core/caller.ts";
import type { ModelConfig } from "../../config/config.ts";
import type { Catalogue } from "../catalogue.ts";
import type { CallAdapter, Chunk } from "./adapter.ts";
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
  const start = { id: callId, requestId, accountId, keyId, keyLimitNanos, discountBp, path };
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
