/** What callers are told where a call cannot be made. */
import { GatewayStopping } from "../caller.ts";
import { UnreadableReplyError } from "../dialect/codec.ts";
import { EventTooLongError } from "../dialect/event-stream.ts";
import { ErrorCode, GatewayError, internalError } from "../errors.ts";
import { HttpFailure } from "../http/failure.ts";
import { formatUsd } from "../money.ts";
import { failureError } from "./upstream-refusal.ts";

/** The balance does not cover the call. */
export function insufficient(neededNanos: bigint, availableNanos: bigint): GatewayError {
  const needed = formatUsd(neededNanos);
  const available = formatUsd(availableNanos);
  return new GatewayError(
    ErrorCode.INSUFFICIENT_BALANCE,
    `Insufficient balance: this call needs ${needed} USD, ${available} USD is available; top up the account or lower max_tokens`,
    { metadata: { needed, available } },
  );
}

/** The vendor answered, but nothing that could be passed on. `internal` says what, for the log. */
export function unusable(internal: string): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_ERROR,
    "The model's vendor answered something unusable; try again",
    { internal },
  );
}

/** None of the model's vendors has what was asked for. */
export function incapable(model: string): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `The model \`${model}\` cannot do this: name another one of those that GET /v1/models lists`,
    { param: "model" },
  );
}

/** What the caller is told of a failure of any kind. @param signal of the call */
export function toldOf(error: unknown, signal: AbortSignal): GatewayError {
  if (error instanceof GatewayError) return error;
  if (signal.reason instanceof GatewayStopping) {
    return new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, "The gateway is stopping; try again");
  }
  if (error instanceof HttpFailure) return failureError(error.kind, error);
  if (error instanceof EventTooLongError || error instanceof UnreadableReplyError) {
    return unusable(error.message);
  }
  return internalError(error);
}
