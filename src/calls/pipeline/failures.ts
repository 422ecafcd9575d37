/** The errors that callers get if a call cannot be served. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { GatewayStopping } from "../../core/caller.ts";
import { UnreadableReplyError } from "../../wire/json/value.ts";
import { EventTooLongError } from "../../wire/sse/event-stream.ts";
import type { CancelSignal } from "../../core/cancel-signal.ts";
import { ErrorCode, GatewayError, internalError } from "../../core/errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import { formatUsd } from "../../core/money.ts";
import { failureError, unusableReply } from "../../routing/upstream-refusal.ts";

/** The hold is used up and cannot grow: the error in the call's record. */
export function outOfBalance(heldNanos: bigint): GatewayError {
  return new GatewayError(
    ErrorCode.INSUFFICIENT_BALANCE,
    `Insufficient balance: the ${formatUsd(heldNanos)} USD that could be set aside for this call are used up`,
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

/** A request that is longer than its model takes. */
export interface TooLong {
  /** The public name of the model. */
  readonly model: string;
  readonly inputTokens: number;
  /** The output limit of the request. Undefined if it has none. */
  readonly maxOutputTokens: number | undefined;
  /**
   * The longest request, with its reply, that any route of the model takes, in tokens. Infinity:
   * not known.
   */
  readonly contextTokens: number;
  /** The caller's, whose names the message uses. */
  readonly dialect: Dialect | undefined;
}

/**
 * Returns the error for a request that exceeds the context of every route. Coding agents of all
 * styles recognise its words and shorten the conversation.
 *
 * @param refused the vendor's refusal, whose message comes first and whose status and details stay.
 * Default: no vendor was called
 */
export function tooLong(
  { model, inputTokens, maxOutputTokens, contextTokens, dialect }: TooLong,
  refused?: GatewayError,
): GatewayError {
  const [input, limit] =
    dialect === Dialect.RESPONSES ? ["input", "max_output_tokens"] : ["messages", "max_tokens"];
  const reply =
    maxOutputTokens === undefined ? "" : ` and may get ${inDigits(maxOutputTokens)} in its reply`;
  const context =
    contextTokens === Infinity
      ? ""
      : `; the maximum context length is ${inDigits(contextTokens)} tokens, with the reply`;
  const lower = maxOutputTokens === undefined ? "" : `, lower \`${limit}\``;
  const text =
    `The prompt is too long for \`${model}\`: it has about ${inDigits(inputTokens)} tokens${reply}${context}. ` +
    `Shorten \`${input}\`${lower}, or use a model of GET /v1/models with a longer context`;
  if (refused === undefined) {
    return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: input });
  }
  const { code, status, details, message } = refused;
  return new GatewayError(code, `${message.replace(/[.\s]+$/, "")}. ${text}`, {
    status,
    details,
    param: input,
  });
}

function inDigits(count: number): string {
  return count.toLocaleString("en-US");
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
