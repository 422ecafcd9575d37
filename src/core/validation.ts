/** Refusals of requests to billing that are wrong in one member. */
import { ErrorCode, GatewayError } from "./errors.ts";
import { isUuid } from "./uuid.ts";

/** A request that is wrong in the member `param`; the message says what would be right. */
export function invalid(param: string, message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param });
}

/**
 * Checks an id before PostgreSQL would fail on it.
 *
 * @throws GatewayError INVALID_REQUEST where it is no UUID in lower case.
 */
export function parseId(param: string, id: string): string {
  if (!isUuid(id)) throw invalid(param, `${param} must be a UUID in lower case, with dashes`);
  return id;
}
