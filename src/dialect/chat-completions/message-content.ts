/** What vendors put into a message or a delta, in all the forms that compatible ones have. */
import { type JsonRecord, recordsAt, textAt } from "../json.ts";
import { reasoningMembers } from "./reasoning.ts";

/** Reasoning as a vendor shows it. */
export interface ShownReasoning {
  readonly text: string;
  /** The member that it stood under. */
  readonly member: string;
}

/** The reasoning in a message or delta; `undefined` where it has none. */
export function readReasoning(said: JsonRecord): ShownReasoning | undefined {
  for (const member of reasoningMembers) {
    const text = textAt(said, member);
    // Some vendors write the same text under both names.
    if (text !== "") return { text, member };
  }
  const { content } = said;
  if (!Array.isArray(content)) return undefined;
  const text = recordsAt(said, "content")
    .filter(({ type }) => type === "thinking")
    .map((part) => textAt(part, "thinking") || joinTexts(recordsAt(part, "thinking")))
    .join("");
  return text === "" ? undefined : { text, member: reasoningMembers[0] };
}

/** The text in a message or delta; empty where it has none. */
export function readText(said: JsonRecord): string {
  const { content } = said;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? joinTexts(recordsAt(said, "content")) : "";
}

function joinTexts(parts: readonly JsonRecord[]): string {
  return parts
    .filter(({ type }) => type === "text")
    .map((part) => textAt(part, "text"))
    .join("");
}

/** The input of a call, which some vendors write as an object instead of its text. */
export function readInput(called: JsonRecord, member: string): string {
  const value = called[member];
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null ? JSON.stringify(value) : "";
}
