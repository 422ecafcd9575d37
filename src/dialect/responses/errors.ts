/** Maps vendor errors to error codes of the gateway. */
import { ErrorCode, type SentErrorCode } from "../../core/errors.ts";
import { type JsonRecord, recordAt, textAt } from "../../wire/json/value.ts";

/** A vendor error as shown to the caller. */
export interface Failure {
  readonly code: SentErrorCode;
  readonly message: string;
}

const codes: ReadonlyMap<string, SentErrorCode> = new Map([
  ["rate_limit_exceeded", ErrorCode.RATE_LIMIT_EXCEEDED],
  ["server_is_overloaded", ErrorCode.UPSTREAM_OVERLOADED],
  ["slow_down", ErrorCode.UPSTREAM_OVERLOADED],
  ["insufficient_quota", ErrorCode.SERVICE_UNAVAILABLE],
  ["vector_store_timeout", ErrorCode.UPSTREAM_TIMEOUT],
  ["context_length_exceeded", ErrorCode.INVALID_REQUEST],
  ["invalid_prompt", ErrorCode.INVALID_REQUEST],
]);

/** Codes for faults in the caller's content: `invalid_image`, `image_too_large` … */
const callersFault =
  /^(?:invalid_(?!api_key)|image_|empty_image|failed_to_download_image|unsupported_)/;

/** Reads an error from `response.failed` or an `error` event, in both forms that vendors use. */
export function failureOf(record: JsonRecord): Failure {
  const error = recordAt(record, "error") ?? record;
  const code = textAt(error, "code");
  const known = codes.get(code) ?? codes.get(textAt(error, "type"));
  const other = callersFault.test(code) ? ErrorCode.INVALID_REQUEST : ErrorCode.UPSTREAM_ERROR;
  const message =
    known === ErrorCode.SERVICE_UNAVAILABLE
      ? "The model cannot be served at the moment; try again later"
      : textAt(error, "message") || "The model's vendor failed; try again";
  return { code: known ?? other, message };
}
