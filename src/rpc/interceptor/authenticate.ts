import { createHash, timingSafeEqual } from "node:crypto";
import { getOption, type DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { ContextValues, Interceptor } from "@connectrpc/connect";
import { Access, access } from "../../../gen/uas/http/v1/http_pb.ts";
import { runInAccountContext } from "../../core/account-context.ts";
import { notSignedIn, browserSessionKey } from "../../core/browser-session.ts";
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
  /** The operator token, for the internal listener only. `undefined`: no token makes its bearer an operator. */
  readonly operatorToken: string | undefined;
  /** Called for recognised keys that are disabled, deleted or expired. Default: nothing happens. */
  readonly onRefusedKey?: OnRefusedKey;
}

/** Identifies the caller, unless an edge has done so, and checks its access. */
export function createAuthenticate(options: AuthenticateOptions): Interceptor {
  const identify = createIdentify(options);
  return (next) => async (request) => {
    const known = request.contextValues.get(callerKey);
    const caller = known ?? (await identify(request.header, request));
    if (known === undefined) request.contextValues.set(callerKey, caller);
    options.checkAccess(request.method, caller);
    // An edge that identified the caller has set the account context too.
    return known === undefined ? runInAccountContext(caller, () => next(request)) : next(request);
  };
}

/** Identifies the caller by request headers. @throws GatewayError UNAUTHENTICATED for a wrong key */
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

/** The method called and its request id. */
interface AskedMethod {
  readonly method: DescMethod;
  readonly contextValues: ContextValues;
}

/** Whether a method may cost money. */
function isCall(method: DescMethod): boolean {
  const { idempotency } = method;
  return (
    getOption(method, access) === Access.KEY && idempotency === Idempotency.IDEMPOTENCY_UNKNOWN
  );
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Options of {@link createSessionAuthenticate}. */
interface SessionAuthenticateOptions {
  /** Resolves the token of a session cookie; anonymous where it is invalid. */
  readonly identify: (token: string) => Promise<Caller>;
  readonly checkAccess: CheckAccess;
}

/** Identifies console callers by their cookie alone, and checks their access. API keys do not count here. */
export function createSessionAuthenticate({
  identify,
  checkAccess,
}: SessionAuthenticateOptions): Interceptor {
  return (next) => async (request) => {
    const token = request.contextValues.get(browserSessionKey)?.token;
    const caller = token === undefined ? anonymous : await identify(token);
    request.contextValues.set(callerKey, caller);
    checkAccess(request.method, caller, notSignedIn);
    return runInAccountContext(caller, () => next(request));
  };
}
