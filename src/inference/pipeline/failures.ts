/** The errors that callers get where a call cannot be served. */
import type { HoldVerdict } from "../../billing/ledger/ledger.ts";
import { GatewayStopping } from "../../core/caller.ts";
import { UnreadableReplyError } from "../../dialect/json/value.ts";
import { EventTooLongError } from "../../dialect/sse/event-stream.ts";
import type { CancelSignal } from "../../core/cancel-signal.ts";
import { ErrorCode, GatewayError, internalError } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import { formatUsd } from "../../core/money.ts";
import { failureError } from "../upstream-refusal.ts";

/** The error for a refused hold. @param limitNanos the key's total spend limit; `undefined`: no limit */
export function holdRefused(
  { availableNanos, keyRemainingNanos }: Refused,
  neededNanos: bigint,
  limitNanos: bigint | undefined,
): GatewayError {
  if (keyRemainingNanos === undefined || limitNanos === undefined) {
    return insufficient(neededNanos, availableNanos);
  }
  return keyLimitReached(neededNanos, { limitNanos, remainingNanos: keyRemainingNanos });
}

type Refused = Extract<HoldVerdict, { admitted: false }>;

/** The balance does not cover the call. */
function insufficient(neededNanos: bigint, availableNanos: bigint): GatewayError {
  const needed = formatUsd(neededNanos);
  const available = formatUsd(availableNanos);
  return new GatewayError(
    ErrorCode.INSUFFICIENT_BALANCE,
    `Insufficient balance: this call needs ${needed} USD, ${available} USD is available; top up the account or ask for fewer tokens (max_tokens)`,
    { metadata: { needed, available } },
  );
}

/** The call could exceed the key's total spend limit (R-KEY-4). */
function keyLimitReached(neededNanos: bigint, limit: KeyLimit): GatewayError {
  const needed = formatUsd(neededNanos);
  const spendLimit = formatUsd(limit.limitNanos);
  const remaining = formatUsd(limit.remainingNanos);
  return new GatewayError(
    ErrorCode.INSUFFICIENT_BALANCE,
    `Insufficient balance: this call needs ${needed} USD, but of the API key's spend limit of ${spendLimit} USD only ${remaining} USD is left; raise the key's limit or ask for fewer tokens (max_tokens)`,
    { metadata: { needed, spend_limit: spendLimit, remaining } },
  );
}

/** A key's total spend limit and the rest of it, in nano-USD. */
interface KeyLimit {
  readonly limitNanos: bigint;
  readonly remainingNanos: bigint;
}

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
