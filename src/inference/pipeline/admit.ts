/**
 * The only place that decides whether a caller may call: account state, key, model access, and whether the gateway
 * takes calls at all. Limits of rate, concurrency and budget belong here.
 */
import type { Caller, KeyCaller } from "../../core/caller.ts";
import type { ModelConfig } from "../../config/config.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
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
 * Who is charged: the access option of an RPC lets keys through, and an operator calling in process has no account.
 *
 * @throws GatewayError ACCESS_DENIED
 */
export function keyCallerOf(
  caller: Caller | undefined,
  message = "Calls to models need an API key: send one",
): KeyCaller {
  if (caller?.kind === "key") return caller;
  throw new GatewayError(ErrorCode.ACCESS_DENIED, message);
}

/** As {@link keyCallerOf}, for what has no record of its own. @throws GatewayError ACCESS_DENIED */
export function admitCaller(caller: Caller | undefined, message?: string): KeyCaller {
  const found = keyCallerOf(caller, message);
  requireActive(found);
  return found;
}

/**
 * Refuses the keys of a suspended account (R-KEY-4). Not asked by the edges, so that a refused call is recorded like
 * any other (R-MON-10).
 *
 * @throws GatewayError ACCESS_DENIED
 */
export function requireActive({ isSuspended }: KeyCaller): void {
  if (!isSuspended) return;
  throw new GatewayError(
    ErrorCode.ACCESS_DENIED,
    "Access denied: this account is suspended; ask the operator of the gateway to resume it",
  );
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
