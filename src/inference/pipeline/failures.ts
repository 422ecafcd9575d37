/** The errors that callers get where a call cannot be served. */
import { GatewayStopping } from "../../core/caller.ts";
import { UnreadableReplyError } from "../../dialect/json/value.ts";
import { EventTooLongError } from "../../dialect/sse/event-stream.ts";
import type { CancelSignal } from "../../core/cancel-signal.ts";
import { ErrorCode, GatewayError, internalError } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import { formatUsd } from "../../core/money.ts";
import { failureError } from "../upstream-refusal.ts";

/** The hold is used up and cannot grow: the error in the call's record. */
export function outOfBalance(heldNanos: bigint): GatewayError {
  return new GatewayError(
    ErrorCode.INSUFFICIENT_BALANCE,
    `Insufficient balance: the ${formatUsd(heldNanos)} USD that could be set aside for this call are used up`,
  );
}

/** The vendor's reply cannot be passed on. @param internal what is wrong with it, for the log */
export function unusableReply(internal: string): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_ERROR,
    "The model's vendor sent an invalid reply; try again",
    { internal },
  );
}

/** Vendors send more unfinished events than the process can keep. */
export function tooManyUnfinished(): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_ERROR,
    "The model's vendor sent an event that did not end, and the gateway needs its memory for other replies; try again",
  );
}

/** None of the model's vendors supports the request. */
export function unsupportedByModel(model: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `The model \`${model}\` does not support this request: use another model that GET /v1/models lists`,
    { param: "model" },
  );
}

/** Converts a failure of any kind to the caller's error. @param signal the call's */
export function toGatewayError(error: unknown, signal: CancelSignal): GatewayError {
  if (error instanceof GatewayError) return error;
  if (signal.reason instanceof GatewayStopping) {
    return new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, "The gateway is stopping; try again");
  }
  if (error instanceof HttpFailure) return failureError(error.kind, error);
  if (error instanceof EventTooLongError || error instanceof UnreadableReplyError) {
    return unusableReply(error.message);
  }
  return internalError(error);
}
