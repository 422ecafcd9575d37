/** Refuses repeated requests that can neither run nor get the first reply. */
import { idempotencyHeader } from "../../core/idempotency-key.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";

/** 409 while the first request runs. */
export function inUse(): GatewayError {
  return new GatewayError(
    ErrorCode.IDEMPOTENCY_KEY_IN_USE,
    `${idempotencyHeader}: the first request with this key is still running; repeat the request in a moment to get its reply. This request is not charged`,
    { param: idempotencyHeader, retryAfterSeconds: 2 },
  );
}

/** 422 for another request. */
export function usedForAnother(requestId: string): GatewayError {
  return reused(
    `it was used for request ${requestId} with another body or path; choose a new key. Nothing was charged`,
    requestId,
  );
}

/** 422 for the request itself, if the first one was charged and its reply is not kept. */
export function notKept(requestId: string): GatewayError {
  return reused(
    `the first request with it, ${requestId}, was completed or charged, and its reply is not kept; choose a new key to run and pay for the request again`,
    requestId,
  );
}

function reused(problem: string, requestId: string): GatewayError {
  return new GatewayError(ErrorCode.IDEMPOTENCY_KEY_REUSED, `${idempotencyHeader}: ${problem}`, {
    param: idempotencyHeader,
    metadata: { request_id: requestId },
  });
}
