/**
 * Accepts the chat completions requests that OpenAI accepts: every member is known, every call is
 * answered.
 */
import type { RecordedRequest } from "./exchange.ts";
import { checkStrict, functionName, metadata, modelRefusal } from "./openai.ts";
import { type Json, object, objects, string } from "./read.ts";
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
  record,
  type Shape,
  tagged,
  text,
  words,
} from "./shape.ts";
import type { StyleError } from "./strict.ts";

const breakpoint = { prompt_cache_breakpoint: record({ mode: anything }) };
const textPart = record({ type: text(), "text!": text(), ...breakpoint });

const onlyText = tagged("type", { text: textPart });

const imageUrl: Shape = (value, path) => {
  text({ min: 1 })(value, path);
  if (!/^(https?:\/\/|data:image\/[a-z+.-]+;base64,[A-Za-z0-9+/]+=*$)/.test(value as string)) {
    invalid(path, "Expected a valid URL, or a data URL of an image.", "invalid_image_url");
  }
};

const userPart = tagged("type", {
  text: textPart,
  image_url: record({
    type: text(),
    "image_url!": record({ "url!": imageUrl, detail: words("auto", "low", "high", "original") }),
    ...breakpoint,
  }),
  input_audio: record({
    type: text(),
    "input_audio!": record({ "data!": text({ min: 1 }), "format!": words("wav", "mp3") }),
    ...breakpoint,
  }),
  file: record({
    type: text(),
    "file!": record({
      file_data: text({ pattern: /^data:[^;,]+;base64,/ }),
      file_id: text(),
      filename: text(),
    }),
    ...breakpoint,
  }),
});

/**
 * Strays that are let pass since its own libraries send them: what they found in a reply's message.
 */
const assistantPart = tagged("type", {
  text: record({
    type: text(),
    "text!": text(),
    annotations: anything,
    role: text(),
    refusal: anything,
    reasoning_content: anything,
  }),
  refusal: record({ type: text(), "refusal!": text() }),
});

const toolCall = tagged("type", {
  function: record({
    "id!": text({ min: 1 }),
    type: text(),
    "function!": record({
      "name!": functionName,
      "arguments!": text(),
      parsed_arguments: anything,
    }),
  }),
  custom: record({
    "id!": text({ min: 1 }),
    type: text(),
    "custom!": record({ "name!": text(), "input!": text() }),
  }),
});

const texts = (part: Shape): Shape => either({ string: text(), array: list(part, { min: 1 }) });
const instruction = record({ role: text(), "content!": texts(onlyText), name: text() });

const message = (reasoning: Readonly<Record<string, Shape>>): Shape =>
  tagged("role", {
    developer: instruction,
    system: instruction,
    user: record({ role: text(), "content!": texts(userPart), name: text() }),
    assistant: record({
      role: text(),
      content: nullable(texts(assistantPart)),
      refusal: nullable(text()),
      tool_calls: list(toolCall, { min: 1, max: 128 }),
      audio: nullable(record({ "id!": text() })),
      function_call: nullable(anything),
      annotations: anything,
      parsed: anything,
      name: text(),
      ...reasoning,
    }),
    tool: record({
      role: text(),
      "content!": texts(onlyText),
      "tool_call_id!": text(),
      name: text(),
    }),
  });

const jsonSchema = record({
  "name!": functionName,
  description: nullable(text()),
  schema: map(anything),
  strict: nullable(flag),
});

const tool = tagged("type", {
  function: record({
    type: text(),
    "function!": record({
      "name!": functionName,
      description: nullable(text()),
      parameters: map(anything),
      strict: nullable(flag),
    }),
  }),
  custom: record({
    type: text(),
    "custom!": record({ "name!": functionName, description: text(), format: anything }),
  }),
});

const toolChoice = either({
  string: words("none", "auto", "required"),
  object: tagged("type", {
    function: record({ type: text(), "function!": record({ "name!": text() }) }),
    custom: record({ type: text(), "custom!": record({ "name!": text() }) }),
    allowed_tools: record({ type: text(), "allowed_tools!": anything }),
  }),
});

/** Members of the body that are about sampling and output. */
const settings: Readonly<Record<string, Shape>> = {
  frequency_penalty: nullable(number(-2, 2)),
  logit_bias: nullable(map(number(-100, 100))),
  logprobs: nullable(flag),
  max_completion_tokens: nullable(integer(1)),
  max_tokens: nullable(integer(1)),
  modalities: nullable(list(words("text", "audio"))),
  n: nullable(integer(1, 128)),
  presence_penalty: nullable(number(-2, 2)),
  reasoning_effort: nullable(words("none", "minimal", "low", "medium", "high", "xhigh", "max")),
  response_format: tagged("type", {
    text: record({ type: text() }),
    json_object: record({ type: text() }),
    json_schema: record({ type: text(), "json_schema!": jsonSchema }),
  }),
  seed: nullable(integer(Number.MIN_SAFE_INTEGER)),
  stop: nullable(either({ string: text(), array: list(text({ min: 1 }), { min: 1, max: 4 }) })),
  temperature: nullable(number(0, 2)),
  top_logprobs: nullable(integer(0, 20)),
  top_p: nullable(number(0, 1)),
  verbosity: nullable(words("low", "medium", "high")),
};

const body = (reasoning: Readonly<Record<string, Shape>>): Shape =>
  record({
    "model!": text(),
    "messages!": list(message(reasoning), { min: 1 }),
    ...settings,
    audio: nullable(anything),
    metadata: nullable(metadata),
    moderation: nullable(anything),
    parallel_tool_calls: flag,
    prediction: nullable(anything),
    prompt_cache_key: nullable(text()),
    prompt_cache_options: anything,
    prompt_cache_retention: nullable(words("in_memory", "24h")),
    safety_identifier: nullable(text({ max: 64 })),
    service_tier: nullable(words("auto", "default", "flex", "scale", "priority", "fast")),
    store: nullable(flag),
    stream: nullable(flag),
    stream_options: nullable(record({ include_usage: flag, include_obfuscation: flag })),
    tool_choice: toolChoice,
    tools: list(tool, { min: 1, max: 128 }),
    user: text(),
    web_search_options: anything,
  });

const plain = body({});
/** In the form of DeepSeek and hosts of open models. */
const withReasoning = body({ reasoning_content: nullable(text()), reasoning: nullable(text()) });

/** Throws ShapeError, or returns an error, for what OpenAI does not accept. */
export function check({ json = {} }: RecordedRequest, reasoning: boolean): StyleError | undefined {
  (reasoning ? withReasoning : plain)(json, []);
  const refusal = modelRefusal(json.model);
  if (refusal) return refusal;
  checkTogether(json);
  checkSchemas(json);
  checkCalls(objects(json.messages));
  return undefined;
}

function checkTogether(json: Json): void {
  if (json["stream_options"] && json["stream"] !== true) {
    invalid(
      ["stream_options"],
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    );
  }
  if (json["max_tokens"] != null && json["max_completion_tokens"] != null) {
    invalid(
      ["max_tokens"],
      "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
      "invalid_parameter_combination",
    );
  }
  for (const name of ["tool_choice", "parallel_tool_calls"]) {
    if (json[name] !== undefined && json["tools"] === undefined && json[name] !== "none") {
      invalid(
        [name],
        `Invalid value for '${name}': '${name}' is only allowed when 'tools' are specified.`,
      );
    }
  }
  const choice = object(object(json["tool_choice"])["function"])["name"];
  const names = objects(json["tools"]).map((one) => object(one["function"])["name"]);
  if (choice !== undefined && !names.includes(choice)) {
    invalid(["tool_choice"], `Tool choice '${string(choice)}' not found in 'tools' parameter.`);
  }
  if (json["top_logprobs"] != null && json["logprobs"] !== true) {
    invalid(["top_logprobs"], "The 'top_logprobs' parameter needs 'logprobs' to be true.");
  }
}

function checkSchemas(json: Json): void {
  const format = object(object(json["response_format"])["json_schema"]);
  if (format["strict"] === true) {
    const path = ["response_format", "json_schema", "schema"];
    checkStrict(format["schema"], path, `response_format '${String(format["name"])}'`);
  }
  for (const [at, one] of objects(json["tools"]).entries()) {
    const { strict, parameters, name } = object(one["function"]);
    const path = ["tools", at, "function", "parameters"];
    if (strict === true) checkStrict(parameters, path, `function '${String(name)}'`);
    if (parameters !== undefined && object(parameters)["type"] !== "object") {
      invalid(
        path,
        `Invalid schema for function '${String(name)}': schema must be of type 'object'.`,
      );
    }
  }
}

/** Every tool call is answered by a tool message right behind it, and nothing else is. */
function checkCalls(messages: readonly Json[]): void {
  let open = new Set<unknown>();
  for (const [at, one] of messages.entries()) {
    if (one["role"] === "tool") {
      if (!open.delete(one["tool_call_id"])) {
        invalid(
          ["messages", at, "role"],
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        );
      }
      continue;
    }
    checkAnswered(open, at);
    const calls = objects(one["tool_calls"]);
    open = new Set(calls.map((call) => call["id"]));
    if (open.size < calls.length)
      invalid(["messages", at, "tool_calls"], "Duplicate tool call id.");
    const isEmpty = one["content"] == null && one["refusal"] == null && calls.length === 0;
    if (one["role"] === "assistant" && isEmpty && !one["audio"]) {
      invalid(["messages", at, "content"], "expected a string, got null.", "invalid_type");
    }
  }
  checkAnswered(open, messages.length);
}

function checkAnswered(open: ReadonlySet<unknown>, at: number): void {
  if (open.size === 0) return;
  invalid(
    ["messages", at, "role"],
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
  );
}
