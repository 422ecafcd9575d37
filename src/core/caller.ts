/** The caller of an RPC, its credentials and its request id. */
import { AsyncLocalStorage } from "node:async_hooks";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { requestIdCharsMax } from "./limits.ts";
import { ErrorCode, GatewayError } from "./errors.ts";
import type { RateLimits } from "./rate-limits.ts";
import { newId } from "./uuid.ts";

/** A key of an account. */
export interface KeyRef {
  readonly accountId: string;
  readonly keyId: string;
}

/**
 * A caller with an API key, with the facts about key and account that a call needs. They are cached with the key,
 * so that a call reads no database for them.
 */
export interface KeyCaller {
  readonly kind: "key";
  readonly accountId: string;
  readonly keyId: string;
  /** The models that the key may use; `undefined` means all. */
  readonly models: ReadonlySet<string> | undefined;
  /** The total that all calls with the key may cost, in nano-USD. Default: no limit. */
  readonly keyLimitNanos?: bigint | undefined;
  /** Its own limits of rate and concurrency. Default: those of the configuration. */
  readonly keyRates?: RateLimits | undefined;
  /** The account's own limits. Default: those of the configuration. */
  readonly accountRates?: RateLimits | undefined;
  /** How long a call of the account waits for room in its limits, in milliseconds. Default: as the configuration has it. */
  readonly limitWaitMs?: number | undefined;
  /** Discount on the account's prices in basis points, 0 to 10,000; 100 is 1 %. Default 0. */
  readonly discountBp?: number | undefined;
  /** Whether the account is suspended, so that its calls are refused. Default false. */
  readonly isSuspended?: boolean | undefined;
}

/** A signed-in console session. */
export interface SessionRef {
  readonly sessionId: string;
  readonly userId: string;
  /** The user's own account, for operators too. */
  readonly accountId: string;
  /** Whether a sign-in link started the session minutes ago. It counts as proof of identity, as a code would. */
  readonly isFreshLink: boolean;
}

/** The kinds of callers. The `access` option of each RPC says which kinds may call it. */
export type Caller =
  | KeyCaller
  | { readonly kind: "session"; readonly accountId: string; readonly session?: SessionRef }
  /** An operator. With a session: signed in to the console. */
  | {
      readonly kind: "operator";
      readonly session?: SessionRef;
      /** How an operator without a session connected, in words for the operator log. Default: unknown. */
      readonly via?: string;
    }
  | { readonly kind: "anonymous" };

/** A caller without credentials. It may call RPCs with `ACCESS_PUBLIC` only. */
export const anonymous: Caller = { kind: "anonymous" };

/** The operator: the command line, or the bearer of the operator token on the internal listener. */
export const operator: Caller = { kind: "operator" };

/** The caller of an RPC. Set by the authenticate interceptor, or by an edge that authenticates itself. */
export const callerKey = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/** The request id of an RPC. Set by the request-id interceptor, or by an edge. */
export const requestIdKey = createContextKey<string>("", { description: "request id" });

/**
 * A recognised key that is disabled, deleted or expired: its account and the reason. The caller never learns the
 * reason (R-AUTH-2).
 */
export interface RefusedKey {
  readonly kind: "refused";
  readonly accountId: string;
  readonly keyId: string;
  readonly reason: "disabled" | "deleted" | "expired";
}

/** Checks an API key. Resolves to `undefined` where the key is unknown. */
export type Authenticate = (key: string) => Promise<Caller | RefusedKey | undefined>;

/**
 * Called when a call presents a recognised key that is disabled, deleted or expired. The caller gets the same error
 * as for an unknown key.
 *
 * @returns whether the call was recorded
 */
export type OnRefusedKey = (
  key: RefusedKey,
  call: { readonly requestId: string; readonly path: string },
) => boolean;

/** The abort reason of calls that the gateway stops, as opposed to clients that disconnect. */
export class GatewayStopping extends Error {}

const requestIdForm = new RegExp(`^[\\x21-\\x7e]{1,${requestIdCharsMax}}$`);

/**
 * Picks the request id of a call: the first candidate of 1 to 256 visible ASCII characters, else a new UUIDv7. A
 * malformed candidate is never echoed.
 */
export function resolveRequestId(...candidates: ReadonlyArray<string | null | undefined>): string {
  for (const candidate of candidates) {
    if (candidate && requestIdForm.test(candidate)) return candidate;
  }
  return newId();
}

/** The places of a request that may carry an API key. */
export interface CredentialSlots {
  readonly authorization: string | null | undefined;
  readonly apiKeyHeader: string | null | undefined;
  readonly apiKeyQuery?: string | null | undefined;
}

/**
 * The presented key. Order: `Authorization: Bearer`, `X-API-Key`, `?api-key=`. The first one present decides, even
 * if it is wrong. Empty values and other authorization schemes count as absent.
 */
export function presentedKey(slots: CredentialSlots): string | undefined {
  const bearer = /^bearer +(.*)$/i.exec(slots.authorization?.trim() ?? "")?.[1]?.trim();
  return bearer || slots.apiKeyHeader?.trim() || slots.apiKeyQuery?.trim() || undefined;
}

/** The error for a request without a key. */
export function missingKey(): GatewayError {
  return new GatewayError(
    ErrorCode.UNAUTHENTICATED,
    "Missing API key: send it as `Authorization: Bearer <API_KEY>` (or as `X-API-Key: <API_KEY>`)",
  );
}

/**
 * The error for a key that is unknown, disabled, deleted or expired. It is always the same, so that nobody can
 * probe keys.
 */
export function invalidKey(): GatewayError {
  return new GatewayError(ErrorCode.UNAUTHENTICATED, "Invalid API Key");
}

/** The error while the gateway runs as many calls as it may. */
export function gatewayBusy(max: number): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    `The gateway already runs ${max} calls, which is its maximum; retry after the time in the retry-after header`,
  );
}

/** The error for calls that arrive while the gateway is stopping. */
export function gatewayStopping(): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "The gateway is stopping and takes no new calls; retry after the time in the retry-after header",
  );
}

// The account that the current work is for. Shared resources (database connections, queues) serve accounts in turn,
// so that one busy account cannot starve the others.

const contexts = new AsyncLocalStorage<string>();

/** Runs work in a context that exists already. */
type Enter = <Result>(work: () => Result) => Result;

/** The contexts of callers. Each new one copies a map, which costs a call 2 µs; the facts of a key are one object while
 * they are cached, so nearly all of its calls share one. */
const known = new WeakMap<Caller, Enter>();

/** The context of operators, of callers not yet identified, and of background jobs. */
export const sharedContext = "";

/** The account id of the current work, or {@link sharedContext}. */
export function currentAccountContext(): string {
  return contexts.getStore() ?? sharedContext;
}

/** Runs work, and everything it starts, in the account context of a caller. */
export function runInAccountContext<Result>(
  caller: Caller | undefined,
  work: () => Result,
): Result {
  if (caller === undefined || !("accountId" in caller)) return contexts.run(sharedContext, work);
  let enter = known.get(caller);
  if (enter === undefined) {
    enter = contexts.run(caller.accountId, () => AsyncLocalStorage.snapshot() as Enter);
    known.set(caller, enter);
  }
  return enter(work);
}

// Who calls, and which accounts a caller may see. What kind of caller may call an RPC at all is checked before.

type Request = Pick<HandlerContext, "values">;

/** Whether the caller is an operator, who may see every account. */
export function isOperator({ values }: Request): boolean {
  return values.get(callerKey)?.kind === "operator";
}

/** Whether the caller may see this account: an operator any, a session its own. */
export function canSeeAccount(request: Request, accountId: string): boolean {
  if (isOperator(request)) return true;
  const caller = request.values.get(callerKey);
  return caller?.kind === "session" && caller.accountId === accountId;
}

/** 404 for an unknown account and for one of another customer: equal, so that nobody learns which ids exist. */
export function noSuchAccount(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such account: check account_id");
}

/**
 * Who is charged: the access option of an RPC lets keys through, and an operator calling in process has no account.
 *
 * @throws GatewayError ACCESS_DENIED
 */
export function keyCallerOf(
  caller: Caller | undefined,
  told = "Calls to models need an API key: send one",
): KeyCaller {
  if (caller?.kind === "key") return caller;
  throw new GatewayError(ErrorCode.ACCESS_DENIED, told);
}

/** As {@link keyCallerOf}, for what has no record of its own. @throws GatewayError ACCESS_DENIED */
export function admitCaller(caller: Caller | undefined, told?: string): KeyCaller {
  const found = keyCallerOf(caller, told);
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
