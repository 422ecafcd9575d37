/**
 * The browser session behind a console RPC, and the step-up check for actions that a session alone
 * does not allow.
 */
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import type { CodeAction } from "../../gen/uas/account/v1/session_pb.ts";
import { type Caller, callerKey, type SessionRef } from "./caller.ts";
import { ErrorCode, GatewayError } from "./errors.ts";

/** The browser that sent an RPC. Created by the edge that reads its cookie. */
export interface BrowserSession {
  /** The client address, as far as proxies are trusted. */
  readonly ipAddress: string;
  /** The `User-Agent` header; empty if it was not sent. */
  readonly userAgent: string;
  /** The token in the session cookie; undefined if there is no cookie. */
  readonly token: string | undefined;
  /** Sets the session cookie, valid for `maxAgeMs`; `undefined` deletes it. */
  keep(token: string | undefined, maxAgeMs?: number): void;
  /** The cookie that outlives sessions and proves earlier sign-ins; undefined if there is none. */
  readonly known: string | undefined;
  /** Sets that cookie, valid for `maxAgeMs`. */
  remember(known: string, maxAgeMs: number): void;
}

/** The browser session of an RPC. Only the console edge sets it. */
export const browserSessionKey = createContextKey<BrowserSession | undefined>(undefined, {
  description: "visit",
});

/** The context values of an RPC. */
export interface RpcContext {
  readonly values: ContextValues;
}

/**
 * The browser session of an RPC.
 *
 * @throws GatewayError ACCESS_DENIED if it did not come from the console
 */
export function requireBrowserSession({ values }: RpcContext): BrowserSession {
  const session = values.get(browserSessionKey);
  if (session !== undefined) return session;
  throw denied("this RPC is for browsers: call it under /console/rpc of the public listener");
}

/**
 * The signed-in session of an RPC.
 *
 * @throws GatewayError ACCESS_DENIED if the caller has none
 */
export function requireSession({ values }: RpcContext): SessionRef {
  const session = sessionOf(values.get(callerKey));
  if (session !== undefined) return session;
  throw denied(
    "this RPC needs the signed-in user of the console: call it with the cookie of a session",
  );
}

/** The console session of a caller; undefined if it has none. */
export function sessionOf(caller: Caller | undefined): SessionRef | undefined {
  if (caller?.kind === "session" || caller?.kind === "operator") return caller.session;
  return undefined;
}

/** An action that needs a one-time code. */
export interface StepUp {
  readonly action: CodeAction;
  /** The id of the object that the action changes; empty if there is none. */
  readonly subjectId: string;
  readonly code: string;
  /** The request member that carries the code. Default `code`. */
  readonly param?: string;
}

/**
 * Requires a one-time code for an action that a session alone does not allow (R-KEY-3, R-HOOK-6).
 * Consumes the code and rotates the session token. Callers without a session need no code: the
 * command line and internal services.
 *
 * @throws GatewayError INVALID_REQUEST if the code is wrong; ACCESS_DENIED
 */
export type RequireStepUp = (calling: RpcContext, stepUp: StepUp) => Promise<void>;

/** The error for a console call without a session. */
export function notSignedIn(): GatewayError {
  return new GatewayError(ErrorCode.UNAUTHENTICATED, "Not signed in: sign in to the console first");
}

function denied(message: string): GatewayError {
  return new GatewayError(ErrorCode.ACCESS_DENIED, `Access denied: ${message}`);
}
