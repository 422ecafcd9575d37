/** How the making of a text failed, in the words of tasks. */
import { UnreadableReplyError } from "../dialect/codec.ts";
import { EventTooLongError } from "../dialect/event-stream.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { HttpFailure } from "../http/failure.ts";
import { type TaskFaultCode, TaskRefused } from "../vendor/task.ts";

/** The vendor's codes for content that it does not want. */
const contentCodes = new Set([
  "content_filter",
  "content_policy_violation",
  "moderation_blocked",
  "invalid_prompt",
]);

/** A vendor's refusal of the request as invalid. */
export function refusedText({ message, details }: GatewayError): TaskRefused {
  const isContent = contentCodes.has(String(details["upstream_code"] ?? ""));
  return new TaskRefused(isContent ? "content_rejected" : "invalid_parameters", message);
}

const codes: ReadonlyMap<ErrorCode, TaskFaultCode> = new Map([
  [ErrorCode.INVALID_REQUEST, "invalid_parameters"],
  [ErrorCode.REQUEST_TOO_LARGE, "invalid_parameters"],
]);

/** What can be accepted later: the vendor has taken nothing. */
const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ErrorCode.RATE_LIMIT_EXCEEDED,
  ErrorCode.UPSTREAM_OVERLOADED,
  ErrorCode.SERVICE_UNAVAILABLE,
]);

/** A vendor's own failures. Another one may be asked, as for calls; the same one not again: what it did until
 * then is paid for, and would be a second time. */
const failed: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ErrorCode.UPSTREAM_ERROR,
  ErrorCode.UPSTREAM_TIMEOUT,
]);

/** Why there is no reply: the request could not be made, or the vendor did not take it. */
export function unopenedText(error: unknown): unknown {
  if (!(error instanceof GatewayError)) return error;
  const { code, message, cause, retryAfterSeconds } = error;
  if (cause instanceof HttpFailure) return cause;
  return new TaskRefused(codes.get(code) ?? "upstream_error", message, passing.has(code), {
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    mayElsewhere: failed.has(code),
  });
}

/** Why a reply that had begun is none: nobody is asked again. */
export function brokenText(error: unknown): unknown {
  if (error instanceof HttpFailure && error.kind !== "aborted") {
    return new TaskRefused("upstream_error", "The model's vendor broke off its reply");
  }
  if (error instanceof UnreadableReplyError || error instanceof EventTooLongError) {
    return new TaskRefused("upstream_error", "The model's vendor answered something unusable");
  }
  if (!(error instanceof GatewayError)) return error;
  const { code, message } = error;
  return new TaskRefused(codes.get(code) ?? "upstream_error", message);
}
