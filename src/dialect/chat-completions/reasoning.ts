/**
 * Reasoning in chat completions. OpenAI has none in this style; compatible vendors show it, and
 * some require it back with its tool calls.
 */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type ReasoningSeal,
  ReasoningSealSchema,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { detailsText, shownDetails } from "./opaque-members.ts";
import { joinTexts } from "./wire.ts";
import { type JsonRecord, recordsAt, textAt } from "../../wire/json/value.ts";

/** The members under which vendors of this style show reasoning: the first is the more common. */
export const reasoningMembers = ["reasoning_content", "reasoning"] as const;

/** The member with the signature of reasoning, in requests of clients that keep it themselves. */
export const signatureMember = "reasoning_signature";

/**
 * Marks reasoning as specific to this style: vendors of other styles do not get it, and vendors of
 * this style get it under the same name.
 */
export function sealOf(member: string): ReasoningSeal {
  return create(ReasoningSealSchema, { dialect: Dialect.CHAT_COMPLETIONS, signature: member });
}

/** Reasoning as a vendor shows it. */
interface ShownReasoning {
  readonly text: string;
  /** The member that contained it. */
  readonly member: string;
}

/** Reads the reasoning of a message or delta; undefined if it has none. */
export function readReasoning(said: JsonRecord): ShownReasoning | undefined {
  for (const member of reasoningMembers) {
    const text = textAt(said, member);
    // Some vendors write the same text under both names.
    if (text !== "") return { text, member };
  }
  const details = detailsText(said);
  if (details !== "") return { text: details, member: shownDetails[0] };
  const { content } = said;
  if (!Array.isArray(content)) return undefined;
  const text = recordsAt(said, "content").map(thoughtsOf).join("");
  return text === "" ? undefined : { text, member: reasoningMembers[0] };
}

/** The reasoning in a part of the content; empty if it is another part. */
function thoughtsOf(part: JsonRecord): string {
  switch (textAt(part, "type")) {
    // Mistral.
    case "thinking":
      return textAt(part, "thinking") || joinTexts(recordsAt(part, "thinking"));
    // Databricks.
    case "reasoning":
      return recordsAt(part, "summary")
        .map((each) => textAt(each, "text"))
        .join("");
    default:
      return "";
  }
}
