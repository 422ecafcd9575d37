import { createHash, timingSafeEqual } from "node:crypto";
import { getOption, type DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { ContextValues, Interceptor } from "@connectrpc/connect";
import { Access, access } from "../../../gen/uas/http/v1/http_pb.ts";
import { inLaneOf } from "../../core/account-context.ts";
import { notSignedIn, visitKey } from "../../core/browser-session.ts";
import {
  anonymous,
  callerKey,
  invalidKey,
  presentedKey,
  requestIdKey,
  type Authenticate,
  type Caller,
  type OnRefusedKey,
} from "../../core/caller.ts";
import type { CheckAccess } from "../access.ts";

interface AuthenticateOptions {
  readonly authenticate: Authenticate;
  readonly checkAccess: CheckAccess;
  /** The token that makes its bearer an operator. `undefined`: none does. Internal listener only. */
  readonly operatorToken: string | undefined;
  /** Told of calls with keys that are known and no good. Default: nobody. */
  readonly onRefusedKey?: OnRefusedKey;
}

/** Finds out who calls, unless an edge has done so already, and whether they may. */
export function createAuthenticate(options: AuthenticateOptions): Interceptor {
  const identify = createIdentify(options);
  return (next) => async (request) => {
    const known = request.contextValues.get(callerKey);
    const caller = known ?? (await identify(request.header, request));
    if (known === undefined) request.contextValues.set(callerKey, caller);
    options.checkAccess(request.method, caller);
    // An edge has chosen the lane of callers that it knows.
    return known === undefined ? inLaneOf(caller, () => next(request)) : next(request);
  };
}

/** Tells who presents these headers. @throws GatewayError UNAUTHENTICATED for a wrong key */
function createIdentify(
  options: Omit<AuthenticateOptions, "checkAccess">,
): (header: Headers, call: AskedMethod) => Promise<Caller> {
  const tokenDigest = options.operatorToken && digest(options.operatorToken);
  return async (header, { method, contextValues }) => {
    const key = presentedKey({
      authorization: header.get("authorization"),
      apiKeyHeader: header.get("x-api-key"),
    });
    if (key === undefined) return anonymous;
    if (tokenDigest && timingSafeEqual(digest(key), tokenDigest)) {
      return { kind: "operator", via: "operator token" };
    }
    const caller = await options.authenticate(key);
    if (caller?.kind === "refused" && isCall(method)) {
      const path = `/${method.parent.typeName}/${method.name}`;
      options.onRefusedKey?.(caller, { requestId: contextValues.get(requestIdKey), path });
    }
    if (caller === undefined || caller.kind === "refused") throw invalidKey();
    return caller;
  };
}

/** What is asked, and what is known of it. */
interface AskedMethod {
  readonly method: DescMethod;
  readonly contextValues: ContextValues;
}

/** Whether a key asks for work that may cost money. */
function isCall(method: DescMethod): boolean {
  const { idempotency } = method;
  return (
    getOption(method, access) === Access.KEY && idempotency === Idempotency.IDEMPOTENCY_UNKNOWN
  );
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** What {@link createSessionAuthenticate} needs. */
interface SessionAuthenticateOptions {
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
