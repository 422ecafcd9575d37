/** Decodes a client's request in full. */
import { create } from "@bufbuild/protobuf";
import {
  ConversationSchema,
  Role,
  type Turn,
  TurnSchema,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type Generation,
  GenerationSchema,
  ReasoningMode,
  type ReasoningOptions,
  ReasoningOptionsSchema,
  type ResponseFormat,
  ResponseFormatSchema,
  ResponseFormatType,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { DecodeRequestOptions } from "../codec.ts";
import { keepTexts } from "../../wire/json/long-texts.ts";
import { type JsonReader, parseObject } from "../reader.ts";
import { decodeMessages } from "./decode-content.ts";
import { decodeTools, decodeToolChoice } from "./decode-tools.ts";

/** Implements {@link CallerCodec.decodeRequest}. */
export function decodeChatRequest(body: Uint8Array, options: DecodeRequestOptions): Generation {
  const reader = parseObject(body, options.outline);
  refuseOtherReplies(reader);
  const model = decodeModel(reader, options);
  const turns = decodeTurns(reader, options);
  const tools = decodeTools(reader);
  const toolChoice = decodeToolChoice(reader);
  const parallelToolCalls = reader.flag("parallel_tool_calls");
  const conversation = create(ConversationSchema, {
    turns,
    tools,
    ...(toolChoice && { toolChoice }),
    ...(parallelToolCalls !== undefined && { parallelToolCalls }),
  });
  const streamOptions = reader.object("stream_options");
  const generation = create(GenerationSchema, {
    model,
    conversation,
    endUser: decodeEndUser(reader),
    serviceTier: reader.text("service_tier"),
    cacheKey: reader.text("prompt_cache_key"),
    stream: reader.flag("stream") ?? false,
    includeUsage: streamOptions?.flag("include_usage") ?? false,
  });
  Object.assign(generation, decodeSampling(reader), decodeForm(reader));
  // Last, since extras are the members that were not read.
  generation.extras = reader.deepExtras();
  return keepTexts(generation, reader.longTexts);
}

/** Refuses audio. Whether a vendor makes several choices, its codec says. */
function refuseOtherReplies(reader: JsonReader): void {
  reader.count("n", { max: 128 });
  const others = reader.texts("modalities").filter((word) => word !== "text");
  if (others.length > 0 || reader.has("audio")) {
    const name = others.length > 0 ? "modalities" : "audio";
    throw reader.invalid("requests audio, but this model replies in text; leave it out", name);
  }
}

function decodeModel(reader: JsonReader, { platformAliases }: DecodeRequestOptions): string {
  const alias = platformAliases && reader.has("modelKey") ? reader.requiredText("modelKey") : "";
  return reader.has("model") || alias === "" ? reader.requiredText("model") : alias;
}

function decodeTurns(reader: JsonReader, { platformAliases }: DecodeRequestOptions): Turn[] {
  if (platformAliases && reader.has("prompt")) {
    if (reader.has("messages")) {
      throw reader.invalid('stands beside "messages"; send only one of them', "prompt");
    }
    const value = { text: reader.text("prompt") };
    const parts = [{ kind: { case: "text" as const, value } }];
    return [create(TurnSchema, { role: Role.USER, parts, plain: true })];
  }
  const messages = reader.objects("messages");
  if (messages.length > 0) return decodeMessages(messages);
  throw reader.invalid("must be an array with at least one message", "messages");
}

function decodeSampling(reader: JsonReader): Partial<Generation> {
  // If both names are present, the newer one counts.
  const older = reader.count("max_tokens");
  const max = reader.count("max_completion_tokens") ?? older;
  const temperature = reader.number("temperature", { min: 0, max: 2 });
  const topP = reader.number("top_p", { min: 0, max: 1 });
  const penalty = { min: -2, max: 2 };
  const presencePenalty = reader.number("presence_penalty", penalty);
  const frequencyPenalty = reader.number("frequency_penalty", penalty);
  const seed = reader.int64("seed");
  return {
    ...(max !== undefined && { maxOutputTokens: max }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(presencePenalty !== undefined && { presencePenalty }),
    ...(frequencyPenalty !== undefined && { frequencyPenalty }),
    ...(seed !== undefined && { seed }),
    stop: reader.isText("stop") ? [reader.text("stop")] : reader.texts("stop"),
  };
}

function decodeForm(reader: JsonReader): Partial<Generation> {
  const effort = reader.text("reasoning_effort");
  const format = reader.object("response_format");
  return {
    verbosity: reader.text("verbosity"),
    ...(effort && { reasoning: decodeEffort(effort) }),
    ...(format && { responseFormat: decodeFormat(format) }),
  };
}

function decodeEffort(effort: string): ReasoningOptions {
  const mode = effort === "none" ? ReasoningMode.DISABLED : ReasoningMode.UNSPECIFIED;
  return create(ReasoningOptionsSchema, { mode, effort });
}

function decodeFormat(format: JsonReader): ResponseFormat {
  switch (format.word("type", ["text", "json_object", "json_schema"])) {
    case "text":
      return create(ResponseFormatSchema, { type: ResponseFormatType.TEXT });
    case "json_object":
      return create(ResponseFormatSchema, { type: ResponseFormatType.JSON_OBJECT });
    case "json_schema": {
      const schema = format.requiredObject("json_schema");
      const strict = schema.flag("strict");
      return create(ResponseFormatSchema, {
        type: ResponseFormatType.JSON_SCHEMA,
        name: schema.requiredText("name"),
        description: schema.text("description"),
        schemaJson: schema.json("schema"),
        ...(strict !== undefined && { strict }),
      });
    }
    case undefined:
    default:
      throw format.invalid("is missing", "type");
  }
}

/**
 * `safety_identifier` replaces the deprecated `user`. Where both are present and differ, `user`
 * stays an extra.
 */
function decodeEndUser(reader: JsonReader): string {
  const identifier = reader.text("safety_identifier");
  if (identifier === "") return reader.text("user");
  return identifier;
}
