/** The shape of responses requests that OpenAI accepts: every member of every item is known. */
import { functionName, metadata } from "./openai.ts";
import { responsesTool } from "./responses-tools.ts";
import {
  anything,
  either,
  flag,
  integer,
  invalid,
  list,
  map,
  nullable,
  number,
  type Path,
  record,
  type Shape,
  tagged,
  text,
  words,
} from "./shape.ts";
import { isObject } from "./exchange.ts";

const breakpoint = { prompt_cache_breakpoint: anything };

/** An id that begins with these letters. */
const idOf =
  (prefix: string): Shape =>
  (value, path) => {
    text({ max: 64 })(value, path);
    if (!(value as string).startsWith(prefix)) {
      invalid(path, `'${String(value)}'. Expected an ID that begins with '${prefix}'.`);
    }
  };

const callId = text({ min: 1, max: 64 });

const inputParts = {
  input_text: record({ type: text(), "text!": text(), ...breakpoint }),
  input_image: record({
    type: text(),
    detail: nullable(words("auto", "low", "high", "original")),
    image_url: nullable(
      text({ pattern: /^(https?:\/\/|data:image\/[a-z+.-]+;base64,[A-Za-z0-9+/]+=*$)/ }),
    ),
    file_id: nullable(text()),
    ...breakpoint,
  }),
  input_file: record({
    type: text(),
    detail: text(),
    file_data: nullable(text({ pattern: /^data:[^;,]+;base64,/ })),
    file_id: nullable(text()),
    file_url: nullable(text()),
    filename: nullable(text()),
    ...breakpoint,
  }),
};

const inputContent = either({ string: text(), array: list(tagged("type", inputParts)) });

const outputContent = either({
  string: text(),
  array: list(
    tagged("type", {
      output_text: record({
        type: text(),
        "text!": text(),
        annotations: list(anything),
        logprobs: nullable(anything),
      }),
      refusal: record({ type: text(), "refusal!": text() }),
    }),
  ),
});

const instruction = record({
  type: text(),
  role: text(),
  "content!": inputContent,
  status: text(),
  id: text(),
});

const messageItem = tagged("role", {
  user: instruction,
  system: instruction,
  developer: instruction,
  assistant: record({
    type: text(),
    role: text(),
    "content!": outputContent,
    id: idOf("msg"),
    status: words("in_progress", "completed", "incomplete"),
    phase: nullable(words("commentary", "final_answer")),
  }),
});

const status = nullable(words("in_progress", "completed", "incomplete"));
const toolOutput = either({ string: text(), array: list(tagged("type", inputParts)) });

const items: Readonly<Record<string, Shape>> = {
  message: messageItem,
  function_call: record({
    type: text(),
    "call_id!": callId,
    "name!": text({ min: 1, max: 128, pattern: /^[a-zA-Z0-9_.-]+$/ }),
    "arguments!": text(),
    id: idOf("fc"),
    status,
    namespace: nullable(text()),
  }),
  function_call_output: record({
    type: text(),
    "call_id!": callId,
    "output!": toolOutput,
    id: nullable(idOf("fc")),
    status,
  }),
  custom_tool_call: record({
    type: text(),
    "call_id!": callId,
    "name!": text(),
    "input!": text(),
    id: idOf("ctc"),
    status,
  }),
  custom_tool_call_output: record({
    type: text(),
    "call_id!": callId,
    "output!": toolOutput,
    id: text(),
  }),
  reasoning: record({
    type: text(),
    id: idOf("rs"),
    "summary!": list(record({ "type!": words("summary_text"), "text!": text() })),
    content: nullable(list(record({ "type!": words("reasoning_text"), "text!": text() }))),
    encrypted_content: nullable(text()),
    status,
  }),
  item_reference: record({ type: text(), "id!": text() }),
  compaction: record({ type: text(), "encrypted_content!": text(), id: nullable(text()) }),
  compaction_trigger: record({ type: text(), id: text() }),
};

/** Items without a type are messages. */
const item: Shape = (value, path) => {
  if (!isObject(value)) invalid(path, "expected an object");
  // In no SDK: codex sends it with its built-in provider, and the real one takes it.
  const { internal_chat_message_metadata_passthrough: _, ...known } = value;
  const isPlain = known["type"] === undefined && known["role"] !== undefined;
  (isPlain ? messageItem : tagged("type", items))(known, path);
};

const format = tagged("type", {
  text: record({ type: text() }),
  json_object: record({ type: text() }),
  json_schema: record({
    type: text(),
    "name!": functionName,
    "schema!": map(anything),
    description: nullable(text()),
    strict: nullable(flag),
  }),
});

const toolChoice = either({
  string: words("none", "auto", "required"),
  object: tagged("type", {
    function: record({ type: text(), "name!": text() }),
    custom: record({ type: text(), "name!": text() }),
    allowed_tools: record({
      type: text(),
      "mode!": words("auto", "required"),
      "tools!": list(anything, { min: 1 }),
    }),
    mcp: record({ type: text(), "server_label!": text(), name: nullable(text()) }),
    web_search: record({ type: text() }),
    web_search_preview: record({ type: text() }),
    file_search: record({ type: text() }),
    code_interpreter: record({ type: text() }),
    image_generation: record({ type: text() }),
  }),
});

const include = words(
  "file_search_call.results",
  "web_search_call.results",
  "web_search_call.action.sources",
  "message.input_image.image_url",
  "computer_call_output.output.image_url",
  "code_interpreter_call.outputs",
  "reasoning.encrypted_content",
  "message.output_text.logprobs",
);

const body = record({
  access_programs: anything,
  background: nullable(flag),
  // In no SDK: codex sends it, and the real one takes it.
  client_metadata: nullable(map(text())),
  context_management: nullable(list(anything)),
  conversation: nullable(either({ string: text(), object: record({ "id!": text() }) })),
  image: anything,
  include: nullable(list(include)),
  input: either({ string: text({ min: 1 }), array: list(item) }),
  instructions: nullable(text()),
  max_output_tokens: nullable(minimum16),
  max_tool_calls: nullable(integer(1)),
  metadata: nullable(metadata),
  "model!": text(),
  moderation: nullable(anything),
  parallel_tool_calls: nullable(flag),
  previous_response_id: nullable(text({ pattern: /^resp_/ })),
  prompt: nullable(anything),
  prompt_cache_key: nullable(text()),
  prompt_cache_options: anything,
  prompt_cache_retention: nullable(words("in_memory", "24h")),
  reasoning: nullable(
    record({
      effort: nullable(words("none", "minimal", "low", "medium", "high", "xhigh", "max")),
      summary: nullable(words("auto", "concise", "detailed")),
      generate_summary: nullable(words("auto", "concise", "detailed")),
      context: anything,
      mode: anything,
    }),
  ),
  safety_identifier: nullable(text({ max: 64 })),
  service_tier: nullable(
    words("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
  ),
  store: nullable(flag),
  stream: nullable(flag),
  stream_options: nullable(record({ include_obfuscation: flag })),
  temperature: nullable(number(0, 2)),
  text: record({ format, verbosity: nullable(words("low", "medium", "high")) }),
  tool_choice: toolChoice,
  tools: list(responsesTool, { max: 128 }),
  top_logprobs: nullable(integer(0, 20)),
  top_p: nullable(number(0, 1)),
  truncation: nullable(words("auto", "disabled")),
  user: text(),
});

function minimum16(value: unknown, path: Path): void {
  if (!Number.isInteger(value)) invalid(path, "expected an integer", "invalid_type");
  if ((value as number) < 16) {
    invalid(
      path,
      `integer below minimum value. Expected a value >= 16, but got ${String(value)} instead.`,
      "integer_below_min_value",
    );
  }
}

const compactBody = record({
  image: anything,
  input: nullable(either({ string: text({ min: 1 }), array: list(item) })),
  instructions: nullable(text()),
  "model!": text(),
  previous_response_id: nullable(text({ pattern: /^resp_/ })),
  prompt_cache_key: nullable(text()),
  prompt_cache_options: anything,
  prompt_cache_retention: nullable(words("in_memory", "24h")),
  service_tier: nullable(words("auto", "default", "flex", "priority", "fast")),
});

/** The same for a request to compact a conversation. */
export function checkCompactShape(json: unknown): void {
  compactBody(json, []);
}

/** Throws ShapeError if a member is unknown, missing or of the wrong kind. */
export function checkShape(json: unknown): void {
  body(json, []);
}
