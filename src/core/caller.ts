/** The caller of an RPC, its credentials and its request id. */
import { createContextKey } from "@connectrpc/connect";
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
 * A caller with an API key, with the facts about key and account that a call needs. They are cached
 * with the key, so that a call reads no database for them.
 */
export interface KeyCaller {
  readonly kind: "key";
  readonly accountId: string;
  readonly keyId: string;
  /** The models that the key may use; `undefined` means all. */
  readonly models: ReadonlySet<string> | undefined;
  /** The total that all calls with the key may cost, in nano-USD. Unlimited by default. */
  readonly keyLimitNanos?: bigint | undefined;
  /** Limits of rate and concurrency of this key. The limits of the configuration by default. */
  readonly keyRates?: RateLimits | undefined;
  /** The account's limits. The limits of the configuration by default. */
  readonly accountRates?: RateLimits | undefined;
  /**
   * Maximum time a call of the account waits for capacity within its limits. The value of the
   * configuration by default.
   */
  readonly limitWaitMs?: number | undefined;
  /** Discount on the account's prices in basis points, 0 to 10,000; 100 is 1 %. Default 0. */
  readonly discountBp?: number | undefined;
  /** The account's price list. Default: none. */
  readonly priceList?: string | undefined;
  /** Whether the account is suspended, so that its calls are refused. Default false. */
  readonly isSuspended?: boolean | undefined;
}

/** A signed-in console session. */
export interface SessionRef {
  readonly sessionId: string;
  readonly userId: string;
  /** The user's account, for operators too. */
  readonly accountId: string;
  /**
   * Whether a sign-in link started the session minutes ago. It counts as proof of identity, as a
   * code would.
   */
  readonly isFreshLink: boolean;
}

/** The kinds of callers. The `access` option of each RPC lists the kinds that may call it. */
export type Caller =
  | KeyCaller
  | { readonly kind: "session"; readonly accountId: string; readonly session?: SessionRef }
  /** An operator. With a session: signed in to the console. */
  | {
      readonly kind: "operator";
      readonly session?: SessionRef;
      /**
       * The connection of an operator without a session, in words for the operator log. Unknown by
       * default.
       */
      readonly via?: string;
      /** The permissions of a service credential; undefined means everything. */
      readonly permissions?: ReadonlySet<string>;
    }
  | { readonly kind: "anonymous" };

/** A caller without credentials. It may call RPCs with `ACCESS_PUBLIC` only. */
export const anonymous: Caller = { kind: "anonymous" };

/** The operator: the command line, or the bearer of the operator token on the internal listener. */
export const operator: Caller = { kind: "operator" };

/**
 * The caller of an RPC. Set by the authenticate interceptor, or by an edge that authenticates
 * itself.
 */
export const callerKey = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/** The request id of an RPC. Set by the request-id interceptor, or by an edge. */
export const requestIdKey = createContextKey<string>("", { description: "request id" });

/**
 * A recognised key that is disabled, deleted or expired: its account and the reason. The caller
 * never receives the reason (R-AUTH-2).
 */
export interface RefusedKey {
  readonly kind: "refused";
  readonly accountId: string;
  readonly keyId: string;
  readonly reason: "disabled" | "deleted" | "expired";
}

/** Checks an API key. Resolves to undefined if the key is unknown. */
export type Authenticate = (key: string) => Promise<Caller | RefusedKey | undefined>;

/** Checks a service credential. Resolves to undefined if the text is not a valid one. */
export type IdentifyService = (secret: string) => Promise<Caller | undefined>;

/**
 * Called when a call presents a recognised key that is disabled, deleted or expired. The caller
 * gets the same error as for an unknown key.
 */
export type OnRefusedKey = (
  key: RefusedKey,
  call: { readonly requestId: string; readonly path: string },
) => void;

/** The abort reason of calls that the gateway stops, as opposed to clients that disconnect. */
export class GatewayStopping extends Error {}

const requestIdForm = new RegExp(`^[\\x21-\\x7e]{1,${requestIdCharsMax}}$`);

/**
 * Picks the request id of a call: the first candidate of 1 to 256 visible ASCII characters, else a
 * new UUIDv7. A malformed candidate is never echoed.
 */
export function resolveRequestId(...candidates: ReadonlyArray<string | null | undefined>): string {
  for (const candidate of candidates) {
    if (candidate && requestIdForm.test(candidate)) return candidate;
  }
  return newId();
}

/** The parts of a request that may contain an API key. */
export interface CredentialSlots {
  readonly authorization: string | null | undefined;
  readonly apiKeyHeader: string | null | undefined;
  readonly apiKeyQuery?: string | null | undefined;
}

/**
 * The presented key. Order: `Authorization: Bearer`, `X-API-Key`, `?api-key=`. The first one
 * present decides, even if it is wrong. Empty values and other authorization schemes count as
 * absent.
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
 * The error for a key that is unknown, disabled, deleted or expired. It is always the same, so that
 * callers cannot probe keys.
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
