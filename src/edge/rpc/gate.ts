/**
 * Identifies the caller of an RPC by its headers and checks its access, before a byte of its
 * message is read, decompressed or parsed (R-AUTH-7).
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { getOption, type DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Logger } from "pino";
import { Access, access } from "../../../gen/uas/http/v1/http_pb.ts";
import { browserSessionKey, notSignedIn } from "../../core/browser-session.ts";
import {
  anonymous,
  type Authenticate,
  type Caller,
  callerKey,
  type IdentifyService,
  invalidKey,
  type OnRefusedKey,
  presentedKey,
  resolveRequestId,
} from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { CheckAccess } from "./access.ts";
import { createErrorConversion } from "./interceptors.ts";

/** Runs before the message of an RPC is read. Sets the caller. @throws ConnectError */
export type RequestGate = (context: HandlerContext) => Promise<void>;

/** Options of every gate. */
interface GateOptions {
  readonly checkAccess: CheckAccess;
  readonly log: Logger;
  /** Whether requests may be compressed: a few kilobytes then unpack to many megabytes. */
  readonly isCompressionAllowed: boolean;
}

/** Options of {@link createKeyGate}. */
interface KeyGateOptions extends GateOptions {
  readonly authenticate: Authenticate;
  /**
   * The operator tokens, for the internal listener only. If empty, no token gives operator access.
   */
  readonly operatorTokens: readonly string[];
  /** Checks service credentials, for the internal listener only. By default none is accepted. */
  readonly identifyService?: IdentifyService | undefined;
  /** Called for recognised keys that are disabled, deleted or expired. */
  readonly onRefusedKey: OnRefusedKey;
}

/** A gate for callers with an API key, or with the operator token. */
export function createKeyGate(options: KeyGateOptions): RequestGate {
  const { authenticate, onRefusedKey, checkAccess } = options;
  const tokenDigests = options.operatorTokens.map(digest);
  const identify = async ({ requestHeader, method }: HandlerContext, requestId: string) => {
    const key = presentedKey({
      authorization: requestHeader.get("authorization"),
      apiKeyHeader: requestHeader.get("x-api-key"),
    });
    if (key === undefined) return anonymous;
    if (isOneOf(key, tokenDigests)) return operatorByToken;
    const service = await options.identifyService?.(key);
    if (service !== undefined) return service;
    const caller = await authenticate(key);
    if (caller?.kind === "refused" && isCall(method)) {
      onRefusedKey(caller, { requestId, path: `/${method.parent.typeName}/${method.name}` });
    }
    if (caller === undefined || caller.kind === "refused") throw invalidKey();
    return caller;
  };
  return createGate(options, async (context, requestId) => {
    const caller = await identify(context, requestId);
    checkAccess(context.method, caller);
    return caller;
  });
}

function isOneOf(token: string, digests: readonly Buffer[]): boolean {
  if (digests.length === 0) return false;
  const presented = digest(token);
  return digests.some((each) => timingSafeEqual(presented, each));
}

const operatorByToken: Caller = { kind: "operator", via: "operator token" };

/** A gate whose callers are the operator: for a listener that only the operator can reach. */
export function createOperatorGate(options: GateOptions): RequestGate {
  return createGate(options, async ({ method }) => {
    options.checkAccess(method, operatorByCommand);
    return operatorByCommand;
  });
}

const operatorByCommand: Caller = { kind: "operator", via: "command line" };

/** Options of {@link createSessionGate}. */
interface SessionGateOptions extends GateOptions {
  /** Resolves the token of a session cookie; anonymous if it is invalid. */
  readonly identify: (token: string) => Promise<Caller>;
}

/**
 * A gate for the console: callers are identified by their cookie alone. API keys do not count here.
 */
export function createSessionGate(options: SessionGateOptions): RequestGate {
  return createGate(options, async ({ values, method }) => {
    const token = values.get(browserSessionKey)?.token;
    const caller = token === undefined ? anonymous : await options.identify(token);
    options.checkAccess(method, caller, notSignedIn);
    return caller;
  });
}

/** @param admit resolves to the caller of an RPC that may be made. @throws GatewayError */
function createGate(
  { log, isCompressionAllowed }: GateOptions,
  admit: (context: HandlerContext, requestId: string) => Promise<Caller>,
): RequestGate {
  const convert = createErrorConversion(log);
  return async (context) => {
    const { requestHeader, values, method, url } = context;
    const requestId = resolveRequestId(
      requestHeader.get("x-request-id"),
      requestHeader.get("request-id"),
    );
    try {
      values.set(callerKey, await admit(context, requestId));
      if (!isCompressionAllowed && isCompressed(requestHeader, url)) throw compressed();
    } catch (error) {
      const shown = convert(error, { requestId, method: method.name });
      shown.metadata.set("x-request-id", requestId);
      throw shown;
    }
  };
}

/** The headers that name the compression of a request: of Connect, its streams, and gRPC. */
const encodingHeaders = ["content-encoding", "connect-content-encoding", "grpc-encoding"];

function isCompressed(header: Headers, url: string): boolean {
  return (
    encodingHeaders.some((name) => (header.get(name) ?? "identity") !== "identity") ||
    (new URL(url).searchParams.get("compression") ?? "identity") !== "identity"
  );
}

function compressed(): GatewayError {
  const message =
    "Requests must not be compressed here: send the message as it is. Replies may be compressed";
  return new GatewayError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message);
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
