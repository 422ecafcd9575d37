import { createHash, timingSafeEqual } from "node:crypto";
import type { Interceptor } from "@connectrpc/connect";
import {
  anonymous,
  type Authenticate,
  type Caller,
  callerKey,
  invalidKey,
  presentedKey,
} from "../../caller.ts";
import { inLaneOf } from "../../lane.ts";
import type { CheckAccess } from "../access.ts";

export interface AuthenticateOptions {
  readonly authenticate: Authenticate;
  readonly checkAccess: CheckAccess;
  /** The token that makes its bearer an operator. `undefined`: none does. Internal listener only. */
  readonly operatorToken: string | undefined;
}

/** Finds out who calls, unless an edge has done so already, and whether they may. */
export function createAuthenticate(options: AuthenticateOptions): Interceptor {
  const identify = createIdentify(options);
  return (next) => async (request) => {
    const known = request.contextValues.get(callerKey);
    const caller = known ?? (await identify(request.header));
    if (known === undefined) request.contextValues.set(callerKey, caller);
    options.checkAccess(request.method, caller);
    // An edge has chosen the lane of callers that it knows.
    return known === undefined ? inLaneOf(caller, () => next(request)) : next(request);
  };
}

/** Tells who presents these headers. @throws GatewayError UNAUTHENTICATED for a wrong key */
export function createIdentify(
  options: Omit<AuthenticateOptions, "checkAccess">,
): (header: Headers) => Promise<Caller> {
  const tokenDigest = options.operatorToken && digest(options.operatorToken);
  return async (header) => {
    const key = presentedKey({
      authorization: header.get("authorization"),
      apiKeyHeader: header.get("x-api-key"),
    });
    if (key === undefined) return anonymous;
    if (tokenDigest && timingSafeEqual(digest(key), tokenDigest)) {
      return { kind: "operator", via: "operator token" };
    }
    const caller = await options.authenticate(key);
    if (caller === undefined) throw invalidKey();
    return caller;
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
