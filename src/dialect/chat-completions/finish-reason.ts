/** Finish reasons, both ways. */
import { StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";

/** The style's words, and those that compatible vendors use instead. */
const reasons: ReadonlyMap<string, StopReason> = new Map([
  ["stop", StopReason.END],
  ["eos", StopReason.END],
  ["end_turn", StopReason.END],
  ["stop_sequence", StopReason.STOP_SEQUENCE],
  ["length", StopReason.LENGTH],
  ["max_tokens", StopReason.LENGTH],
  ["model_length", StopReason.LENGTH],
  ["tool_calls", StopReason.TOOL_CALLS],
  ["tool_use", StopReason.TOOL_CALLS],
  ["function_call", StopReason.TOOL_CALLS],
  ["content_filter", StopReason.CONTENT_FILTER],
  ["refusal", StopReason.REFUSAL],
]);

/** Words that report a failure: the reply is incomplete. */
const failures: ReadonlySet<string> = new Set(["error", "insufficient_system_resource"]);

/** Whether the vendor failed, going by its reason. */
export function isFailureReason(finishReason: string): boolean {
  return failures.has(finishReason);
}

/** Reads a vendor's reason. */
export function decodeFinishReason(finishReason: string): StopReason {
  return reasons.get(finishReason) ?? StopReason.UNSPECIFIED;
}

/**
 * Encodes a reason. A refusal is shown as text, and ends like any other reply.
 *
 * @param hasRefusal whether the reply has such a text; without it only the reason shows the refusal
 */
export function encodeFinishReason(reason: StopReason, hasRefusal: boolean): string {
  switch (reason) {
    case StopReason.REFUSAL:
      return hasRefusal ? "stop" : "content_filter";
    case StopReason.TOOL_CALLS:
      return "tool_calls";
    case StopReason.LENGTH:
      return "length";
    case StopReason.CONTENT_FILTER:
      return "content_filter";
    case StopReason.UNSPECIFIED:
    case StopReason.END:
    case StopReason.STOP_SEQUENCE:
    case StopReason.PAUSE:
    default:
      return "stop";
  }
}
