/** A responses request, read in full: the caller's side. */
import { create } from "@bufbuild/protobuf";
import {
  ConversationSchema,
  type Extra,
  ExtraSchema,
  Role,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type Generation,
  GenerationSchema,
  type ReasoningOptions,
  ReasoningOptionsSchema,
  type ResponseFormat,
  ResponseFormatSchema,
  ResponseFormatType,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { missing } from "../body-members.ts";
import { append } from "../../core/append.ts";
import type { DecodeRequestOptions } from "../codec.ts";
import { keepTexts } from "../../wire/json/long-texts.ts";
import { type JsonReader, parseObject } from "../reader.ts";
import { newTurn, textPart } from "../turns/parts.ts";
import { withoutCompacted } from "./compaction.ts";
import { decodeItem, instructionsTurn } from "./decode-content.ts";
import { decodeToolChoice, decodeTools } from "./decode-tools.ts";

/** Requests encrypted reasoning from a vendor. */
export const encryptedReasoning = "reasoning.encrypted_content";

/**
 * Implements {@link CallerCodec.decodeRequest}. Members of `reasoning` and `text` without a field
 * in the contract become extras with their path as the name: `reasoning.context`.
 */
export function decodeResponsesRequest(
  bytes: Uint8Array,
  { outline }: DecodeRequestOptions,
): Generation {
  const body = parseObject(bytes, outline);
  refuseStateful(body);
  const model = body.text("model");
  if (model === "") {
    throw body.invalid("is missing: name one of those that GET /v1/models lists", "model");
  }
  const turns = decodeTurns(body);
  const toolChoice = decodeToolChoice(body);
  const parallelToolCalls = body.flag("parallel_tool_calls");
  const conversation = create(ConversationSchema, {
    turns,
    tools: decodeTools(body),
    ...(toolChoice && { toolChoice }),
    ...(parallelToolCalls !== undefined && { parallelToolCalls }),
  });
  const extras: Extra[] = [];
  const settings = decodeSettings(body, extras);
  append(
    extras,
    body.extras().filter(({ name, json }) => !defaults.has(`${name}:${json}`)),
  );
  const generation = create(GenerationSchema, { model, conversation, ...settings, extras });
  return keepTexts(generation, body.longTexts);
}

/** Members that ask for what is done anyway. */
const defaults: ReadonlySet<string> = new Set([
  'truncation:"disabled"',
  'stream_options:{"include_obfuscation":false}',
]);

/** Refuses requests that would run, or be stored, at one vendor. */
function refuseStateful(body: JsonReader): void {
  if (body.flag("background") === true) {
    throw body.invalid(
      'is not supported with this model: leave it out, or send false and "stream": true',
      "background",
    );
  }
  if (body.has("conversation")) {
    throw body.invalid(
      'is not supported with this model: send the earlier items in "input", or "previous_response_id"',
      "conversation",
    );
  }
  if (body.has("prompt")) {
    throw body.invalid(
      'is not supported with this model: send "instructions" and "input" instead',
      "prompt",
    );
  }
}

function decodeTurns(body: JsonReader): Turn[] {
  const instructions = body.optionalText("instructions");
  const first = instructions === undefined ? [] : [instructionsTurn(instructions)];
  const input = body.value("input");
  const isContinuation = body.has("previous_response_id");
  if (!isContinuation && (input === "" || (Array.isArray(input) && input.length === 0))) {
    throw body.invalid('is empty: send at least one item, or "previous_response_id"', "input");
  }
  if (typeof input === "string") {
    const parts = [textPart(input)];
    return [...first, newTurn(Role.USER, parts, { plain: true })];
  }
  if (input === undefined && !isContinuation) {
    const unread = body.extras().map(({ name }) => name);
    throw missing({ unread }, ["input"], "send a string or an array of items");
  }
  if (input !== undefined && !Array.isArray(input)) {
    throw body.invalid("must be a string or an array of items", "input");
  }
  const items = body.objects("input");
  const turns = items.map(decodeItem);
  return [...first, ...withoutCompacted(turns, items)];
}

type Settings = Partial<Omit<Generation, "$typeName" | "$unknown">>;

function decodeSettings(body: JsonReader, extras: Extra[]): Settings {
  const maxOutputTokens = body.count("max_output_tokens");
  const temperature = body.number("temperature", { min: 0, max: 2 });
  const topP = body.number("top_p", { min: 0, max: 1 });
  const penalty = { min: -2, max: 2 };
  const presencePenalty = body.number("presence_penalty", penalty);
  const frequencyPenalty = body.number("frequency_penalty", penalty);
  const reasoning = decodeReasoningOptions(body, extras);
  const text = body.object("text");
  const format = text?.object("format");
  const responseFormat = format && decodeFormat(format);
  const verbosity = text?.text("verbosity") ?? "";
  if (text !== undefined) append(extras, nested("text", text));
  if (format !== undefined) append(extras, nested("text.format", format));
  return {
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(presencePenalty !== undefined && { presencePenalty }),
    ...(frequencyPenalty !== undefined && { frequencyPenalty }),
    ...(reasoning && { reasoning }),
    ...(responseFormat && { responseFormat }),
    verbosity,
    // With both, the older name is left over as an extra.
    endUser: body.text(body.has("safety_identifier") ? "safety_identifier" : "user"),
    serviceTier: body.text("service_tier"),
    cacheKey: body.text("prompt_cache_key"),
    stream: body.flag("stream") ?? false,
  };
}

function nested(path: string, reader: JsonReader): Extra[] {
  return reader
    .extras()
    .map(({ name, json }) => create(ExtraSchema, { name: `${path}.${name}`, json }));
}

function decodeReasoningOptions(body: JsonReader, extras: Extra[]): ReasoningOptions | undefined {
  const include = body.texts("include");
  const encrypted = include.includes(encryptedReasoning);
  const others = include.filter((each) => each !== encryptedReasoning);
  if (others.length > 0) {
    extras.push(create(ExtraSchema, { name: "include", json: JSON.stringify(others) }));
  }
  const reasoning = body.object("reasoning");
  if (reasoning === undefined) {
    return encrypted ? create(ReasoningOptionsSchema, { encrypted }) : undefined;
  }
  const effort = reasoning.text("effort");
  const summary = reasoning.text(reasoning.has("summary") ? "summary" : "generate_summary");
  append(extras, nested("reasoning", reasoning));
  return create(ReasoningOptionsSchema, { effort, summary, encrypted });
}

const formats = {
  text: ResponseFormatType.TEXT,
  json_object: ResponseFormatType.JSON_OBJECT,
  json_schema: ResponseFormatType.JSON_SCHEMA,
} as const;

function decodeFormat(format: JsonReader): ResponseFormat {
  const word = format.word("type", ["text", "json_object", "json_schema"]);
  if (word === undefined) throw format.invalid("is missing", "type");
  if (word !== "json_schema") return create(ResponseFormatSchema, { type: formats[word] });
  const strict = format.flag("strict");
  return create(ResponseFormatSchema, {
    type: formats[word],
    name: format.requiredText("name"),
    description: format.text("description"),
    schemaJson: format.requiredObject("schema").toJson(),
    ...(strict !== undefined && { strict }),
  });
}
