/** What an error in the middle of a vendor's stream is to the caller. */
import { ErrorCode } from "../../errors.ts";

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
