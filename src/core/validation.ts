/** Refusals of requests that are wrong in one member. */
import { ErrorCode, GatewayError } from "./errors.ts";

/** A request that is wrong in the member `param`; the message says what would be right. */
export function invalid(param: string, message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param });
}

/** A member that the contract's rules require: where it is missing, the request was not checked, which is a defect. */
export function present<Value>(value: Value | undefined): Value {
  if (value === undefined)
    throw new Error("a required member is missing: the request was not checked");
  return value;
}
