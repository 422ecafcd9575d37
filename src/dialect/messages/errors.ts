import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorCode, type GatewayError, type SentErrorCode } from "../../core/errors.ts";
import { ObjectScan } from "../../wire/json/scan.ts";
import { withErrorWords } from "../vendor-error.ts";

/** The style's words for the gateway's error codes (R-ERR-1). */
const words: Readonly<Record<SentErrorCode, string>> = {
  [ErrorCode.INVALID_REQUEST]: "invalid_request_error",
  [ErrorCode.UNAUTHENTICATED]: "authentication_error",
  [ErrorCode.INSUFFICIENT_BALANCE]: "billing_error",
  [ErrorCode.ACCESS_DENIED]: "permission_error",
  [ErrorCode.MODEL_NOT_FOUND]: "not_found_error",
  [ErrorCode.TASK_NOT_FOUND]: "not_found_error",
  [ErrorCode.NOT_FOUND]: "not_found_error",
  [ErrorCode.METHOD_NOT_ALLOWED]: "invalid_request_error",
  [ErrorCode.TASK_NOT_CANCELLABLE]: "invalid_request_error",
  [ErrorCode.REQUEST_TOO_LARGE]: "request_too_large",
  [ErrorCode.UNSUPPORTED_MEDIA_TYPE]: "invalid_request_error",
  [ErrorCode.IDEMPOTENCY_KEY_REUSED]: "invalid_request_error",
  [ErrorCode.IDEMPOTENCY_KEY_IN_USE]: "invalid_request_error",
  [ErrorCode.RATE_LIMIT_EXCEEDED]: "rate_limit_error",
  [ErrorCode.QUEUE_FULL]: "rate_limit_error",
  [ErrorCode.INTERNAL_ERROR]: "api_error",
  [ErrorCode.UPSTREAM_ERROR]: "api_error",
  [ErrorCode.SERVICE_UNAVAILABLE]: "overloaded_error",
  [ErrorCode.UPSTREAM_OVERLOADED]: "overloaded_error",
  [ErrorCode.UPSTREAM_TIMEOUT]: "api_error",
  [ErrorCode.CONTENT_REJECTED]: "invalid_request_error",
  [ErrorCode.INVALID_PARAMETERS]: "invalid_request_error",
  [ErrorCode.UPSTREAM_SUBMIT_UNKNOWN]: "api_error",
  [ErrorCode.TASK_TIMEOUT]: "api_error",
  [ErrorCode.RESULT_UNAVAILABLE]: "api_error",
  [ErrorCode.CONFLICT]: "invalid_request_error",
};

/** The style's word for a code. */
export function errorType(code: SentErrorCode): string {
  return words[code];
}

/**
 * `{type:"error",error:{type,message,details:{error_code}},request_id}`: the stable code is at the
 * position that the SDK reads.
 */
export function messagesErrorBody(error: GatewayError, requestId: string): JsonObject {
  const details = { error_code: error.meaning.word, ...error.details };
  const body = { type: words[error.code], message: error.message, details };
  return { type: "error", error: body, ...(requestId && { request_id: requestId }) };
}

/**
 * A vendor's refusal for a client: `{type:"error",error:{type,message}}`, all strings.
 *
 * @returns undefined if the body has another form
 */
export function relayMessagesError(body: Buffer, { code }: GatewayError): Buffer | undefined {
  const scan = new ObjectScan().scan(body, 0, body.length);
  if (!scan.is("type", "error")) return undefined;
  const at = scan.find("error");
  const error = new ObjectScan().scan(body, scan.start(at), scan.end(at));
  if (error.stringBytes("message") === 0) return undefined;
  return withErrorWords(body, ["error"], { type: words[code] });
}

/** R-ERR-3: that the vendor refuses our credential or our money is no fault of the caller's. */
const codes: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ["overloaded_error", ErrorCode.UPSTREAM_OVERLOADED],
  ["rate_limit_error", ErrorCode.RATE_LIMIT_EXCEEDED],
  ["timeout_error", ErrorCode.UPSTREAM_TIMEOUT],
  ["invalid_request_error", ErrorCode.INVALID_REQUEST],
  ["request_too_large", ErrorCode.REQUEST_TOO_LARGE],
  ["authentication_error", ErrorCode.SERVICE_UNAVAILABLE],
  ["permission_error", ErrorCode.SERVICE_UNAVAILABLE],
  ["billing_error", ErrorCode.SERVICE_UNAVAILABLE],
]);

/** The code for the `type` of an error event. */
export function failureCode(type: string): ErrorCode {
  return codes.get(type) ?? ErrorCode.UPSTREAM_ERROR;
}
