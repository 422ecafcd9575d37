/**
 * Converts free-text tools for vendors that have functions only. Such a tool becomes a function
 * with one string, `input`; its calls are unwrapped on the way back.
 */

import type { CustomTool } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { memberOf, objectMembers, changeMembers, writeMembers } from "../../wire/json/source.ts";
import { isRecord, parseRecord, recordAt, textAt } from "../../wire/json/value.ts";

/** The JSON Schema of that function, as JSON. */
export const customInputSchema = JSON.stringify({
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
});

/** The arguments of the function for a text, as JSON. */
export function wrapCustomInput(input: string): string {
  return JSON.stringify({ input });
}

/**
 * Unwraps the text of a call. Weak models name the member after the tool, `{"patch": …}`, or leave
 * it away: the only string is meant. Returns the arguments unchanged if the model wrote another
 * form.
 */
export function unwrapCustomInput(args: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(args);
  } catch {
    return args;
  }
  if (typeof parsed === "string") return parsed;
  if (!isRecord(parsed)) return args;
  const { input } = parsed;
  if (typeof input === "string") return input;
  const texts = Object.values(parsed).filter((value) => typeof value === "string");
  return texts.length === 1 && texts[0] !== undefined ? texts[0] : args;
}

/**
 * Converts a tool's input format between styles: chat completions nest a grammar, responses do not.
 * Unknown forms are returned unchanged.
 *
 * @param format JSON
 */
export function customFormat(format: string, form: "flat" | "nested"): string {
  const record = parseRecord(format);
  if (record?.["type"] !== "grammar") return format;
  const isNested = isRecord(record["grammar"]);
  const inner = isNested
    ? memberOf(format, "grammar")
    : changeMembers(format, { type: undefined, grammar: undefined });
  return form === "nested"
    ? writeMembers([grammarType, { name: "grammar", json: inner }])
    : writeMembers([grammarType, ...objectMembers(inner)]);
}

const grammarType = { name: "type", json: '"grammar"' };

/**
 * The description of that function. A grammar for its input is described in words, since function
 * calls cannot enforce it.
 */
export function customDescription({ description, formatJson }: CustomTool): string {
  const format = parseRecord(formatJson);
  if (format === undefined || textAt(format, "type") !== "grammar") return description;
  // Chat completions nest it, responses do not.
  const grammar = recordAt(format, "grammar") ?? format;
  const rule = `The input must follow this ${textAt(grammar, "syntax")} grammar:\n${textAt(grammar, "definition")}`;
  return description === "" ? rule : `${description}\n\n${rule}`;
}
