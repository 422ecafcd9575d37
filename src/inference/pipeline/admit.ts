/**
 * The only place that decides whether a caller may call: account state, API key, model access, and whether the gateway
 * accepts calls at all. Limits of rate, concurrency and budget belong here.
 */
import type { Caller, KeyCaller } from "../../core/caller.ts";
import type { ModelConfig } from "../../config/config.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
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
 * Returns the caller with an API key, whose account is charged. The access option of an RPC admits keys only, but an
 * operator that calls in process has no account.
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

/** Admits a caller to a method without call records: {@link keyCallerOf} and {@link requireActive}.
 * @throws GatewayError ACCESS_DENIED */
export function admitCaller(caller: Caller | undefined, message?: string): KeyCaller {
  const found = keyCallerOf(caller, message);
  requireActive(found);
  return found;
}

/**
 * Refuses the keys of a suspended account (R-KEY-4). Not called by the edges, so that a refused call is recorded like
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
