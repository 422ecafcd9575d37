/** What is said of keys that are not there. */
import { ErrorCode, GatewayError } from "../errors.ts";

/** Somebody else's key is not found, as one that does not exist: nobody learns which do. */
export function noSuchKey(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such key: check key_id");
}

/** A deleted key does nothing any more. */
export function keyIsDeleted(): GatewayError {
  const text = "this key is deleted, which is final: create another one";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "key_id" });
}
