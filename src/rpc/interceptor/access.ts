import type { Interceptor } from "@connectrpc/connect";
import { runInAccountContext } from "../../core/account-context.ts";
import { anonymous, callerKey } from "../../core/caller.ts";
import type { CheckAccess } from "../access.ts";

/**
 * Checks the access of the caller that the edge has identified, and runs the RPC in the context of its account. Nobody gets
 * past an edge that identified no one.
 */
export function createAccess(checkAccess: CheckAccess): Interceptor {
  return (next) => (request) => {
    const caller = request.contextValues.get(callerKey) ?? anonymous;
    checkAccess(request.method, caller);
    return runInAccountContext(caller, () => next(request));
  };
}
