/** Who is calling, and what travels with every RPC beside its message. */
import { createContextKey } from "@connectrpc/connect";
import { requestIdCharsMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "./errors.ts";
import { newId } from "./uuid.ts";

/** Who calls with an API key, and what is known of the key and its account: kept beside the key in memory,
 * so that a call asks nobody for it. */
export interface KeyCaller {
  readonly kind: "key";
  readonly accountId: string;
  readonly keyId: string;
  /** The only models that the key may use; `undefined`: every model. */
  readonly models: ReadonlySet<string> | undefined;
  /** The most that all calls with the key may cost together, in nano-USD. Default: no limit. */
  readonly keyLimitNanos?: bigint | undefined;
  /** What is taken off the account's prices, in basis points, 0 to 10,000: 100 is 1 %. Default 0. */
  readonly discountBp?: number | undefined;
  /** The account is suspended: its calls are refused. Default: it is not. */
  readonly isSuspended?: boolean | undefined;
}

/** The console session behind a call. */
export interface SessionRef {
  readonly sessionId: string;
  readonly userId: string;
  /** The user's own account, also where the user is an operator. */
  readonly accountId: string;
  /** A link began the session, minutes ago: who can make one needs no other proof. */
  readonly isFreshLink: boolean;
}

/** Who is calling. What each kind may call is the `access` option of every RPC. */
export type Caller =
  | KeyCaller
  | { readonly kind: "session"; readonly accountId: string; readonly session?: SessionRef }
  /** With a session: who is signed in to the console as an operator. */
  | {
      readonly kind: "operator";
      readonly session?: SessionRef;
      /** Without a session: how the operator came, in words. Default: not known. */
      readonly via?: string;
    }
  | { readonly kind: "anonymous" };

/** Nobody in particular: calls of `ACCESS_PUBLIC` only. */
export const anonymous: Caller = { kind: "anonymous" };

/** The operator: the command line, or the bearer of the operator token on the internal listener. */
export const operator: Caller = { kind: "operator" };

/** The caller of an RPC, set by the authenticate interceptor (or by an edge that has done its work). */
export const callerKey = createContextKey<Caller | undefined>(undefined, {
  description: "caller",
});

/** The resolved request id of an RPC, set by the request-id interceptor (or by an edge). */
export const requestIdKey = createContextKey<string>("", { description: "request id" });

/** A key that is known and no good any more: whose it is, and why. Its caller never learns it (R-AUTH-2). */
export interface RefusedKey {
  readonly kind: "refused";
  readonly accountId: string;
  readonly keyId: string;
  readonly reason: "disabled" | "deleted" | "expired";
}

/** Checks a presented API key. Resolves to `undefined` where it is unknown. */
export type Authenticate = (key: string) => Promise<Caller | RefusedKey | undefined>;

/**
 * Told of a call with a key that is known and no good, which is refused as one with an unknown key is.
 *
 * @returns whether a record of the call is kept
 */
export type OnRefusedKey = (
  key: RefusedKey,
  call: { readonly requestId: string; readonly path: string },
) => boolean;

/** Why a call's signal is aborted where it is the gateway that stops, not the client that leaves. */
export class GatewayStopping extends Error {}

const requestIdForm = new RegExp(`^[\\x21-\\x7e]{1,${requestIdCharsMax}}$`);

/**
 * The request id of a call: the first candidate that is 1 to 256 visible ASCII characters, else a fresh
 * UUIDv7. A malformed candidate is never reflected.
 */
export function resolveRequestId(...candidates: ReadonlyArray<string | null | undefined>): string {
  for (const candidate of candidates) {
    if (candidate && requestIdForm.test(candidate)) return candidate;
  }
  return newId();
}

/** Where a key can stand. */
export interface CredentialSlots {
  readonly authorization: string | null | undefined;
  readonly apiKeyHeader: string | null | undefined;
  readonly apiKeyQuery?: string | null | undefined;
}

/**
 * The presented key: `Authorization: Bearer` before `X-API-Key` before `?api-key=`. The first one that is
 * there decides, also when it is wrong; an empty one and another scheme count as not there.
 */
export function presentedKey(slots: CredentialSlots): string | undefined {
  const bearer = /^bearer +(.*)$/i.exec(slots.authorization?.trim() ?? "")?.[1]?.trim();
  return bearer || slots.apiKeyHeader?.trim() || slots.apiKeyQuery?.trim() || undefined;
}

/** What is said where no key was sent. */
export function missingKey(): GatewayError {
  return new GatewayError(
    ErrorCode.UNAUTHENTICATED,
    "Missing API key: send it as `Authorization: Bearer <API_KEY>` (or as `X-API-Key: <API_KEY>`)",
  );
}

/** What is said of a key that is unknown, disabled, deleted or expired: always the same, so that nobody
 * learns which. */
export function invalidKey(): GatewayError {
  return new GatewayError(ErrorCode.UNAUTHENTICATED, "Invalid API Key");
}

/** What is said to calls that come while as many run as may. */
export function gatewayBusy(max: number): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    `The gateway already runs the ${max} calls that it runs at once; retry after the time in the retry-after header`,
  );
}

/** What is said to calls that come while the gateway stops. */
export function gatewayStopping(): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "The gateway is stopping and takes no new calls; retry after the time in the retry-after header",
  );
}
