/**
 * Tools that take free text, for vendors that know only functions: such a tool becomes a function with one
 * string, `input`, and its calls are unwrapped on their way back.
 */

import type { CustomTool } from "../../gen/uas/inference/v1/conversation_pb.ts";
import { isRecord, parseRecord, recordAt, textAt } from "./json/value.ts";

/** The JSON Schema of the function that stands for such a tool, as JSON. */
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

/** The text of a call's arguments; the arguments themselves where the model wrote something else. */
export function unwrapCustomInput(args: string): string {
  try {
    const parsed = JSON.parse(args) as { input?: unknown } | null;
    return typeof parsed?.input === "string" ? parsed.input : args;
  } catch {
    return args;
  }
}

/**
 * The form of such a tool's input for a style, from that of any: chat completions nest a grammar, responses
 * do not. What is none, or is known by no style, stays as it is.
 *
 * @param format parsed JSON
 */
export function customFormat(format: unknown, form: "flat" | "nested"): unknown {
  if (!isRecord(format) || format["type"] !== "grammar") return format;
  const { type, grammar, ...flat } = format;
  const inner = isRecord(grammar) ? grammar : flat;
  return form === "flat" ? { type, ...inner } : { type, grammar: inner };
}

/** What the function is described as: a grammar that its input must follow is told in words, since no style
 * of functions can enforce it. */
export function customDescription({ description, formatJson }: CustomTool): string {
  const format = parseRecord(formatJson);
  if (format === undefined || textAt(format, "type") !== "grammar") return description;
  // Chat completions nest it, responses do not.
  const grammar = recordAt(format, "grammar") ?? format;
  const rule = `The input must follow this ${textAt(grammar, "syntax")} grammar:\n${textAt(grammar, "definition")}`;
  return description === "" ? rule : `${description}\n\n${rule}`;
}
