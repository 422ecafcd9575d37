/** Why a reply ended. */
import { StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type JsonRecord, recordAt, textAt } from "../../wire/json/value.ts";

/** The end of a reply. */
export interface Finish {
  readonly reason: StopReason;
  /** The vendor's explanation. Empty if there is none. */
  readonly detail: string;
}

const reasons: ReadonlyMap<string, StopReason> = new Map([
  ["STOP", StopReason.END],
  ["MAX_TOKENS", StopReason.LENGTH],
  ["CONTINUATION", StopReason.PAUSE],
  ["SAFETY", StopReason.CONTENT_FILTER],
  ["RECITATION", StopReason.CONTENT_FILTER],
  ["LANGUAGE", StopReason.CONTENT_FILTER],
  ["BLOCKLIST", StopReason.CONTENT_FILTER],
  ["PROHIBITED_CONTENT", StopReason.CONTENT_FILTER],
  ["SPII", StopReason.CONTENT_FILTER],
  ["IMAGE_SAFETY", StopReason.CONTENT_FILTER],
  ["IMAGE_PROHIBITED_CONTENT", StopReason.CONTENT_FILTER],
  ["IMAGE_RECITATION", StopReason.CONTENT_FILTER],
]);

/**
 * Reads the end of the reply from a chunk: from its candidate, or from the refusal of the prompt.
 *
 * @returns undefined if the reply continues
 */
export function readFinish(chunk: JsonRecord, candidate: JsonRecord): Finish | undefined {
  const word = textAt(candidate, "finishReason");
  if (word !== "" && word !== "FINISH_REASON_UNSPECIFIED") {
    const reason = reasons.get(word) ?? StopReason.UNSPECIFIED;
    const isFiltered = reason === StopReason.CONTENT_FILTER;
    return { reason, detail: isFiltered ? textAt(candidate, "finishMessage") || word : "" };
  }
  const feedback = recordAt(chunk, "promptFeedback") ?? {};
  const blocked = textAt(feedback, "blockReason");
  if (blocked === "" || blocked.endsWith("_REASON_UNSPECIFIED")) return undefined;
  const detail = textAt(feedback, "blockReasonMessage") || blocked;
  return { reason: StopReason.CONTENT_FILTER, detail };
}
