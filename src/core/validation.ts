/** Refuses requests in which one member is wrong. */
import { ErrorCode, GatewayError } from "./errors.ts";

/**
 * The INVALID_REQUEST error for the member `param`. The message describes a valid value.
 *
 * @param param as the caller wrote it; undefined if the body as a whole is at fault
 */
export function invalid(param: string | undefined, message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, param === undefined ? {} : { param });
}

/**
 * A member that the contract's rules require. If it is missing, the request was not checked, which
 * is a defect.
 */
export function present<Value>(value: Value | undefined): Value {
  if (value === undefined)
    throw new Error("a required member is missing: the request was not checked");
  return value;
}
