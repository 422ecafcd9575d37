/**
 * Kinds of failures below HTTP.
 *
 * - `connect`: no connection was made, so nothing was sent and another route may be tried.
 * - `timeout`: the vendor received the request but did not answer in time.
 * - `reset`: the connection broke after the request was sent, or the reply was not HTTP.
 * - `aborted`: cancelled by the gateway.
 */
export type FailureKind = "connect" | "connect_timeout" | "timeout" | "reset" | "aborted";

/** A request without a complete reply. The message is for the log, not for callers. */
export class HttpFailure extends Error {
  readonly kind: FailureKind;
  /**
   * Whether the whole request had been written to the connection: then the vendor may have
   * processed it.
   */
  isSent = false;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "HttpFailure";
    this.kind = kind;
  }
}

const kinds: Readonly<Record<string, FailureKind>> = {
  UND_ERR_CONNECT_TIMEOUT: "connect_timeout",
  UND_ERR_HEADERS_TIMEOUT: "timeout",
  UND_ERR_BODY_TIMEOUT: "timeout",
  ECONNREFUSED: "connect",
  ENOTFOUND: "connect",
  EAI_AGAIN: "connect",
  EHOSTUNREACH: "connect",
  ENETUNREACH: "connect",
  ETIMEDOUT: "connect_timeout",
  CERT_HAS_EXPIRED: "connect",
  DEPTH_ZERO_SELF_SIGNED_CERT: "connect",
  SELF_SIGNED_CERT_IN_CHAIN: "connect",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "connect",
  ERR_TLS_CERT_ALTNAME_INVALID: "connect",
};

/**
 * Classifies an error of the HTTP library. Unknown errors count as `reset`, so that a request that
 * may have been sent is not repeated.
 */
export function readFailure(error: Error): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return new HttpFailure(kinds[code] ?? "reset", code || error.message, error);
}

/**
 * Codes that exclude an open connection. Other codes, such as EHOSTUNREACH or ETIMEDOUT, may break
 * an open one.
 */
const unsentCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

/** Whether certainly no byte of the request was sent, so that nothing runs at the vendor. */
export function isUnsent({ kind, cause }: HttpFailure): boolean {
  if (kind !== "connect" && kind !== "connect_timeout") return false;
  return cause instanceof Error && "code" in cause && unsentCodes.has(String(cause.code));
}
