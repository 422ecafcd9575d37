/** How a response ends: status and details against the contract's reasons, and failures. */
import type { Part } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type ReplyEnd, StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type JsonRecord, recordAt, textAt } from "../json/value.ts";

/** What of a reply's parts tells why it ended. */
export interface ReplyContents {
  readonly calls: boolean;
  readonly refusal: boolean;
}

/** What the parts of a whole reply tell. */
export function contentsOf(parts: readonly Part[]): ReplyContents {
  return {
    calls: parts.some(({ kind }) => kind.case === "toolCall"),
    refusal: parts.some(({ kind }) => kind.case === "refusal"),
  };
}

/** Why a response ended: this style itself tells only what kept it from being complete. */
export function stopReasonOf(response: JsonRecord, { calls, refusal }: ReplyContents): StopReason {
  const details = recordAt(response, "incomplete_details");
  const reason = details === undefined ? "" : textAt(details, "reason");
  if (reason === "content_filter") return StopReason.CONTENT_FILTER;
  if (reason === "max_output_tokens" || textAt(response, "status") === "incomplete") {
    return StopReason.LENGTH;
  }
  if (calls) return StopReason.TOOL_CALLS;
  return refusal ? StopReason.REFUSAL : StopReason.END;
}

/** How a response is said to have ended. */
export interface Ending {
  readonly status: "completed" | "incomplete";
  /** `null`: it is complete. */
  readonly details: JsonRecord | null;
  /** A refusal that is still to be told, as content of its own. Empty: none. */
  readonly refusal: string;
}

/** What of an ending the style has no place for, by its names. */
export function lostEndingNames(
  {
    stopReason,
    stopSequence,
    stopDetail,
  }: Pick<ReplyEnd, "stopReason" | "stopSequence" | "stopDetail">,
  { refusal }: Ending,
): string[] {
  return [
    ...(stopReason === StopReason.PAUSE ? ["stop_reason"] : []),
    ...(stopSequence === "" ? [] : ["stop_sequence"]),
    ...(stopDetail === "" || stopDetail === refusal ? [] : ["stop_detail"]),
  ];
}

/** What a reply's reason is in this style. */
export function endingOf(reason: StopReason, detail: string, { refusal }: ReplyContents): Ending {
  switch (reason) {
    case StopReason.LENGTH:
      return { status: "incomplete", details: { reason: "max_output_tokens" }, refusal: "" };
    case StopReason.CONTENT_FILTER:
      return filtered;
    case StopReason.REFUSAL:
      if (refusal || detail !== "") {
        return { status: "completed", details: null, refusal: refusal ? "" : detail };
      }
      return filtered;
    case StopReason.UNSPECIFIED:
    case StopReason.END:
    case StopReason.TOOL_CALLS:
    case StopReason.STOP_SEQUENCE:
    case StopReason.PAUSE:
    default:
      return { status: "completed", details: null, refusal: "" };
  }
}

const filtered: Ending = {
  status: "incomplete",
  details: { reason: "content_filter" },
  refusal: "",
};
