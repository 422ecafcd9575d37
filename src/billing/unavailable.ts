/** What callers are told while the books cannot be kept. */
import { ErrorCode, GatewayError } from "../errors.ts";

/** 503: nothing was charged, and it may work soon. `reason` begins the message. */
export function unavailable(reason: string): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    `${reason}; nothing was charged, try again in a moment`,
    { retryAfterSeconds: 1 },
  );
}
