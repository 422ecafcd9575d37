/** What is known of the browser that calls from the console, beside who is signed in. */
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import type { CodeAction } from "../../gen/uas/account/v1/session_pb.ts";
import { type Caller, callerKey, type SessionRef } from "./caller.ts";
import { ErrorCode, GatewayError } from "./errors.ts";

/** A browser's call. The edge that has the cookie makes it. */
export interface Visit {
  /** The address that the call came from, as far as proxies are trusted. */
  readonly ipAddress: string;
  /** What the browser calls itself; empty where it does not say. */
  readonly userAgent: string;
  /** The token that its cookie holds. `undefined`: it has none. */
  readonly token: string | undefined;
  /** Gives the browser another token, for so long; `undefined` takes it away. */
  keep(token: string | undefined, maxAgeMs?: number): void;
}

/** The visit of an RPC; only edges of the console set it. */
export const visitKey = createContextKey<Visit | undefined>(undefined, { description: "visit" });

/** What of an RPC says who calls. */
export interface Calling {
  readonly values: ContextValues;
}

/** The visit of an RPC that needs one. @throws GatewayError ACCESS_DENIED elsewhere than on the console */
export function requireVisit({ values }: Calling): Visit {
  const visit = values.get(visitKey);
  if (visit !== undefined) return visit;
  throw denied("this RPC is for browsers: call it under /console/rpc of the public listener");
}

/** The session of an RPC that is about the one who calls. @throws GatewayError ACCESS_DENIED */
export function requireSession({ values }: Calling): SessionRef {
  const session = sessionOf(values.get(callerKey));
  if (session !== undefined) return session;
  throw denied(
    "this RPC is about who is signed in to the console: call it with a session's cookie",
  );
}

/** The session behind a caller. */
export function sessionOf(caller: Caller | undefined): SessionRef | undefined {
  if (caller?.kind === "session" || caller?.kind === "operator") return caller.session;
  return undefined;
}

/** What a code is presented for. */
export interface StepUp {
  readonly action: CodeAction;
  /** The id that the action is about; empty where it has none. */
  readonly subjectId: string;
  readonly code: string;
  /** The member of the request that has it. Default `code`. */
  readonly param?: string;
}

/**
 * Makes sure that who calls may do what a session alone does not allow (R-KEY-3, R-HOOK-6): uses up the code for it, and
 * gives the session another token. Callers without a session need no code: the command line, internal services.
 *
 * @throws GatewayError INVALID_REQUEST where the code is not right; ACCESS_DENIED
 */
export type RequireStepUp = (calling: Calling, stepUp: StepUp) => Promise<void>;

/** What is said to a console call without a session. */
export function notSignedIn(): GatewayError {
  return new GatewayError(ErrorCode.UNAUTHENTICATED, "Not signed in: sign in to the console first");
}

function denied(message: string): GatewayError {
  return new GatewayError(ErrorCode.ACCESS_DENIED, `Access denied: ${message}`);
}
