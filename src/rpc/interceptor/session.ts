import type { Interceptor } from "@connectrpc/connect";
import { anonymous, type Caller, callerKey } from "../../caller.ts";
import { inLaneOf } from "../../lane.ts";
import { notSignedIn, visitKey } from "../../visit.ts";
import type { CheckAccess } from "../access.ts";

/** What {@link createSessionAuthenticate} needs. */
export interface SessionAuthenticateOptions {
  /** Who presents the token of a cookie; nobody in particular where it is no good. */
  readonly identify: (token: string) => Promise<Caller>;
  readonly checkAccess: CheckAccess;
}

/** Finds out by the cookie alone who calls from the console, and whether they may: no key counts here. */
export function createSessionAuthenticate({
  identify,
  checkAccess,
}: SessionAuthenticateOptions): Interceptor {
  return (next) => async (request) => {
    const token = request.contextValues.get(visitKey)?.token;
    const caller = token === undefined ? anonymous : await identify(token);
    request.contextValues.set(callerKey, caller);
    checkAccess(request.method, caller, notSignedIn);
    return inLaneOf(caller, () => next(request));
  };
}
