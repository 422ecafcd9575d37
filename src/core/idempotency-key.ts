/** The request header `Idempotency-Key`, by which a repeated request is recognised. */
import { invalid } from "./validation.ts";

/** The name of the header, for errors. */
export const idempotencyHeader = "Idempotency-Key";

/**
 * Visible ASCII only: other characters do not survive headers, and repeated headers arrive joined
 * by a space.
 */
const visible = /^[\u0021-\u007e]{1,255}$/;

/**
 * Checks the header's value. @param advice ends the message of the error. Default: none @throws
 * GatewayError INVALID_REQUEST
 */
export function checkIdempotencyKey(key: string, advice = ""): string {
  if (visible.test(key)) return key;
  throw invalid(
    idempotencyHeader,
    `${idempotencyHeader}: must be 1 to 255 visible ASCII characters without spaces, in one header${advice}`,
  );
}
