/**
 * The members that OpenAI's own specification requires (`openapi.json` of
 * github.com/openai/openai-openapi, MIT, version 2.3.0, commit f85dbe22 of 21 August 2026), by the
 * type of the object: events, items, contents, tools. A response is `response`, its usage `usage`.
 */
import { isRecord, type JsonRecord } from "../../../../src/wire/json/value.ts";

const content = "type item_id output_index content_index sequence_number";
const summary = "type item_id output_index summary_index sequence_number";
const item = "type item_id output_index sequence_number";
const whole = "type response sequence_number";

const published: Readonly<Record<string, string>> = {
  response:
    "id object created_at error incomplete_details instructions model tools output parallel_tool_calls metadata tool_choice temperature top_p",
  usage: "input_tokens input_tokens_details output_tokens output_tokens_details total_tokens",
  message: "id type role content status",
  function_call: "type call_id name arguments",
  custom_tool_call: "type call_id name input",
  reasoning: "id summary type",
  compaction: "type id encrypted_content",
  "response.compaction": "id object output created_at usage",
  output_text: "type text annotations logprobs",
  refusal: "type refusal",
  reasoning_text: "type text",
  summary_text: "type text",
  url_citation: "type url start_index end_index title",
  file_citation: "type file_id index filename",
  function: "type name strict parameters",
  custom: "type name",
  namespace: "type name description tools",
  error: "type code message param sequence_number",
  "response.created": whole,
  "response.in_progress": whole,
  "response.completed": whole,
  "response.incomplete": whole,
  "response.output_item.added": "type output_index item sequence_number",
  "response.output_item.done": "type output_index item sequence_number",
  "response.content_part.added": `${content} part`,
  "response.content_part.done": `${content} part`,
  "response.output_text.delta": `${content} delta logprobs`,
  "response.output_text.done": `${content} text logprobs`,
  "response.output_text.annotation.added": `${content} annotation_index annotation`,
  "response.refusal.delta": `${content} delta`,
  "response.refusal.done": `${content} refusal`,
  "response.function_call_arguments.delta": `${item} delta`,
  "response.function_call_arguments.done": `${item} name arguments`,
  "response.custom_tool_call_input.delta": `${item} delta`,
  "response.custom_tool_call_input.done": `${item} input`,
  "response.reasoning_summary_part.added": `${summary} part`,
  "response.reasoning_summary_part.done": `${summary} part`,
  "response.reasoning_summary_text.delta": `${summary} delta`,
  "response.reasoning_summary_text.done": `${summary} text`,
  "response.reasoning_text.delta": `${content} delta`,
  "response.reasoning_text.done": `${content} text`,
};

/**
 * The members that an event, or an object in it, lacks: one line each. Tools that callers define
 * hold any JSON.
 */
export function missingMembers(value: unknown, path = ""): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((each, index) => missingMembers(each, `${path}/${index}`));
  }
  if (!isRecord(value)) return [];
  const missing = requiredOf(value, path).filter((name) => !(name in value));
  const inner = Object.entries(value).filter(([name]) => name !== "parameters");
  return [
    ...missing.map((name) => `${path} lacks ${name}`),
    ...inner.flatMap(([name, each]) => missingMembers(each, `${path}/${name}`)),
  ];
}

/** The required members of an object. Throws where the specification does not know its type. */
export function requiredOf(value: JsonRecord, path = ""): string[] {
  const { object, type } = value;
  if (path.endsWith("/usage")) return published["usage"]!.split(" ");
  if (typeof object === "string") return published[object]!.split(" ");
  // The request's choices are repeated in its form, and errors have separate types.
  if (typeof type !== "string" || /\/(?:format|tool_choice|error)$/.test(path)) return [];
  const required = published[type];
  if (required === undefined) throw new Error(`${path} is of the unknown type ${type}`);
  return required.split(" ");
}
