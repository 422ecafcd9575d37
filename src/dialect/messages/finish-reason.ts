/** Finish reasons, both ways. */
import { type Reply, StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type JsonRecord, recordAt, textAt } from "../../wire/json/value.ts";

/** The end of a reply. */
export type Ending = Pick<Reply, "stopReason" | "stopSequence" | "stopDetail">;

const reasons: ReadonlyMap<string, StopReason> = new Map<string, StopReason>([
  ["end_turn", StopReason.END],
  ["max_tokens", StopReason.LENGTH],
  ["model_context_window_exceeded", StopReason.LENGTH],
  ["stop_sequence", StopReason.STOP_SEQUENCE],
  ["tool_use", StopReason.TOOL_CALLS],
  ["pause_turn", StopReason.PAUSE],
  ["refusal", StopReason.REFUSAL],
]);

/** Decodes the end from a message, or from the `delta` of a `message_delta`. */
export function readEnding(record: JsonRecord): Ending {
  const word = textAt(record, "stop_reason");
  const details = recordAt(record, "stop_details") ?? {};
  return {
    // An unknown reason still means that the model ended by itself.
    stopReason: word === "" ? StopReason.UNSPECIFIED : (reasons.get(word) ?? StopReason.END),
    stopSequence: textAt(record, "stop_sequence"),
    stopDetail: textAt(details, "explanation") || textAt(details, "category"),
  };
}

/** The end of a reply that reached its token limit. */
export const lengthEnding: Ending = {
  stopReason: StopReason.LENGTH,
  stopSequence: "",
  stopDetail: "",
};

/** Content of a reply that affects its end. */
export interface ReplyContents {
  /** Whether it has a tool call; some vendors report the usual end for such a reply. */
  readonly hasToolCall: boolean;
  /** The refusal text; `undefined` for none. */
  readonly refusal: string | undefined;
}

/** Members that report the end to a client. */
export interface WireEnding {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
  readonly stop_details?: {
    readonly type: "refusal";
    readonly category: null;
    readonly explanation: string | null;
  };
}

/** The end for a client. */
export function writeEnding(ending: Ending, said: ReplyContents): WireEnding {
  const { stopSequence, stopDetail } = ending;
  const reason = endingWord(ending.stopReason, said);
  return {
    stop_reason: reason,
    stop_sequence: reason === "stop_sequence" ? stopSequence : null,
    ...(reason === "refusal" && {
      stop_details: {
        type: "refusal",
        category: null,
        explanation: stopDetail || said.refusal || null,
      },
    }),
  };
}

function endingWord(reason: StopReason, { hasToolCall, refusal }: ReplyContents): string {
  switch (reason) {
    case StopReason.TOOL_CALLS:
      return "tool_use";
    case StopReason.LENGTH:
      return "max_tokens";
    case StopReason.STOP_SEQUENCE:
      return "stop_sequence";
    case StopReason.REFUSAL:
    case StopReason.CONTENT_FILTER:
      return "refusal";
    case StopReason.PAUSE:
      return "pause_turn";
    case StopReason.END:
    case StopReason.UNSPECIFIED:
    default:
      if (hasToolCall) return "tool_use";
      return refusal === undefined ? "end_turn" : "refusal";
  }
}
