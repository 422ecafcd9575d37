/**
 * The members that a response, its items and its events must have, as JSON Schema. Written by hand
 * from two public specifications: OpenAI's API (`openapi.json` of github.com/openai/openai-openapi,
 * version 2.3.0 of August 2026) and Open Responses (openresponses.org), which also requires the
 * members that OpenAI documents as optional or nullable.
 *
 * Known gaps of OpenAI's own specification: it requires neither `completed_at`, `status` nor
 * `usage`; it refuses the `usage: null` that OpenAI sends while a response runs; its response has
 * no penalties and its error event no `error` object, though clients read both.
 */
import { Ajv2020 } from "ajv/dist/2020.js";

type Schema = Readonly<Record<string, unknown>>;

const text: Schema = { type: "string" };
const name: Schema = { type: "string", minLength: 1 };
const count: Schema = { type: "integer", minimum: 0 };
const flag: Schema = { type: "boolean" };
const anything: Schema = {};
const list = (items: Schema): Schema => ({ type: "array", items });
const words = (...values: readonly string[]): Schema => ({ enum: values });
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: "null" }] });

/** An object with these members, all of them required, and any others. */
function object(members: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", properties: members, required: Object.keys(members) };
}

/** An object of one of several types. */
function oneOf(types: Readonly<Record<string, Schema>>): Schema {
  return {
    type: "object",
    required: ["type"],
    properties: { type: { enum: Object.keys(types) } },
    allOf: Object.entries(types).map(([type, schema]) => ({
      if: { properties: { type: { const: type } } },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: schema,
    })),
  };
}

const itemStatus = words("in_progress", "completed", "incomplete");

const annotation = oneOf({
  url_citation: object({ url: name, title: text, start_index: count, end_index: count }),
  file_citation: object({ file_id: name, index: count, filename: text }),
});

const content = oneOf({
  output_text: object({ text, annotations: list(annotation), logprobs: list(anything) }),
  refusal: object({ refusal: text }),
  reasoning_text: object({ text }),
});

const summary = oneOf({ summary_text: object({ text }) });

const item = oneOf({
  message: object({
    id: name,
    role: words("assistant"),
    status: itemStatus,
    content: list(content),
  }),
  function_call: object({
    id: name,
    call_id: name,
    name,
    arguments: text,
    status: itemStatus,
  }),
  custom_tool_call: object({ id: name, call_id: name, name, input: text, status: itemStatus }),
  reasoning: object({ id: name, summary: list(summary) }),
});

const tool = oneOf({
  function: object({
    name,
    description: orNull(text),
    parameters: orNull({ type: "object" }),
    strict: orNull(flag),
  }),
  custom: object({ name }),
  namespace: object({ name, tools: list({ type: "object" }) }),
});

const usage = object({
  input_tokens: count,
  input_tokens_details: object({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: object({ reasoning_tokens: count }),
  total_tokens: count,
});

/** A response in any state. */
const response = object({
  id: name,
  object: words("response"),
  created_at: count,
  completed_at: orNull(count),
  status: words("queued", "in_progress", "completed", "incomplete", "failed", "cancelled"),
  background: flag,
  error: orNull(object({ code: name, message: name })),
  incomplete_details: orNull(object({ reason: words("max_output_tokens", "content_filter") })),
  instructions: orNull(text),
  max_output_tokens: orNull(count),
  max_tool_calls: orNull(count),
  metadata: { type: "object" },
  model: name,
  output: list(item),
  parallel_tool_calls: flag,
  previous_response_id: orNull(name),
  prompt_cache_key: orNull(name),
  reasoning: object({ effort: orNull(name), summary: orNull(name) }),
  safety_identifier: orNull(name),
  service_tier: name,
  store: flag,
  temperature: { type: "number" },
  text: object({ format: object({ type: words("text", "json_object", "json_schema") }) }),
  tool_choice: { anyOf: [words("auto", "none", "required"), object({ type: name })] },
  tools: list(tool),
  top_logprobs: count,
  top_p: { type: "number" },
  presence_penalty: { type: "number" },
  frequency_penalty: { type: "number" },
  truncation: words("auto", "disabled"),
  usage: orNull(usage),
});

const inItem = { item_id: name, output_index: count };
const inContent = { ...inItem, content_index: count };
const inSummary = { ...inItem, summary_index: count };

const event: Schema = {
  allOf: [
    object({ sequence_number: count }),
    oneOf({
      error: object({ code: orNull(name), message: name, param: orNull(name) }),
      "response.created": object({ response }),
      "response.in_progress": object({ response }),
      "response.completed": object({ response }),
      "response.incomplete": object({ response }),
      "response.output_item.added": object({ output_index: count, item }),
      "response.output_item.done": object({ output_index: count, item }),
      "response.content_part.added": object({ ...inContent, part: content }),
      "response.content_part.done": object({ ...inContent, part: content }),
      "response.output_text.delta": object({ ...inContent, delta: text, logprobs: list(anything) }),
      "response.output_text.done": object({ ...inContent, text, logprobs: list(anything) }),
      "response.output_text.annotation.added": object({
        ...inContent,
        annotation_index: count,
        annotation,
      }),
      "response.refusal.delta": object({ ...inContent, delta: text }),
      "response.refusal.done": object({ ...inContent, refusal: text }),
      "response.function_call_arguments.delta": object({ ...inItem, delta: text }),
      "response.function_call_arguments.done": object({ ...inItem, name, arguments: text }),
      "response.custom_tool_call_input.delta": object({ ...inItem, delta: text }),
      "response.custom_tool_call_input.done": object({ ...inItem, input: text }),
      "response.reasoning_summary_part.added": object({ ...inSummary, part: summary }),
      "response.reasoning_summary_part.done": object({ ...inSummary, part: summary }),
      "response.reasoning_summary_text.delta": object({ ...inSummary, delta: text }),
      "response.reasoning_summary_text.done": object({ ...inSummary, text }),
      "response.reasoning_text.delta": object({ ...inContent, delta: text }),
      "response.reasoning_text.done": object({ ...inContent, text }),
    }),
  ],
};

const ajv = new Ajv2020({ allErrors: true, strict: false });
const isResponse = ajv.compile(response);
const isEvent = ajv.compile(event);

/** Returns the faults of a response, one line each; empty if there are none. */
export function faultsOfResponse(body: unknown): string[] {
  return isResponse(body) ? [] : faults(isResponse.errors);
}

/** Returns the faults of an event. */
export function faultsOfEvent(body: unknown): string[] {
  return isEvent(body) ? [] : faults(isEvent.errors);
}

function faults(errors: typeof isEvent.errors): string[] {
  return (errors ?? []).map(({ instancePath, message = "" }) => `${instancePath} ${message}`);
}
