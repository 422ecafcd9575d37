/** Finish reasons, both ways: a response's status and details, and the contract's reasons. */
import type { Part } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type ReplyEnd, StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type JsonRecord, recordAt, textAt } from "../../wire/json/value.ts";

/** Content of a reply that affects its end. */
export interface ReplyContents {
  readonly calls: boolean;
  readonly refusal: boolean;
}

/** Derives it from the parts of a whole reply. */
export function contentsOf(parts: readonly Part[]): ReplyContents {
  return {
    calls: parts.some(({ kind }) => kind.case === "toolCall"),
    refusal: parts.some(({ kind }) => kind.case === "refusal"),
  };
}

/** Decodes the finish reason. The style reports only reasons for incomplete responses. */
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

/** The encoded end of a response. */
export interface Ending {
  readonly status: "completed" | "incomplete";
  /** `null` if it is complete. */
  readonly details: JsonRecord | null;
  /** A refusal to add as content; empty for none. */
  readonly refusal: string;
}

/** Names of end details without a member in this style. */
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

/** Encodes a finish reason. */
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
