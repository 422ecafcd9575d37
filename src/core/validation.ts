/** Refuses requests in which one member is wrong. */
import { ErrorCode, GatewayError } from "./errors.ts";
import { isUuid } from "./uuid.ts";

/**
 * The INVALID_REQUEST error for the member `param`. The message says what would be right.
 *
 * @param param as the caller wrote it; `undefined` where the body as a whole is at fault
 */
export function invalid(param: string | undefined, message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, param === undefined ? {} : { param });
}

/**
 * Checks an id before PostgreSQL fails on it.
 *
 * @throws GatewayError INVALID_REQUEST where it is no UUID in lower case
 */
export function parseId(param: string, id: string): string {
  if (!isUuid(id)) throw invalid(param, `${param} must be a UUID in lower case, with dashes`);
  return id;
}
