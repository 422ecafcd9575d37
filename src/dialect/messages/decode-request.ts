/** Decodes a client's request of the messages style. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ConversationSchema,
  type Extra,
  Role,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type Generation,
  GenerationSchema,
  ReasoningMode,
  type ReasoningOptionsSchema,
  ResponseFormatType,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { append } from "../../core/append.ts";
import type { DecodeRequestOptions } from "../codec.ts";
import { unsupportedThread } from "../features/guard.ts";
import { keepTexts } from "../../wire/json/long-texts.ts";
import { type JsonReader, parseObject } from "../reader.ts";
import { newExtra, newTurn } from "../turns/parts.ts";
import { readServiceTier } from "./wire.ts";
import { decodeTools, decodeToolChoice } from "./decode-tools.ts";
import { decodeContent } from "./decode-content.ts";

const roles = { system: Role.SYSTEM, user: Role.USER, assistant: Role.ASSISTANT } as const;
const roleWords = ["user", "assistant", "system"] as const;

/** Members that change the meaning of a request and that no other style has. */
const unservable = ["safeguards", "mcp_servers"];

/** Implements {@link CallerCodec.decodeRequest}. This style has no platform aliases. */
export function decodeMessagesRequest(
  body: Uint8Array,
  { outline }: DecodeRequestOptions,
): Generation {
  const reader = parseObject(body, outline);
  refuseUnservable(reader);
  const model = reader.requiredText("model");
  const extras: Extra[] = [];
  const turns = [...decodeSystem(reader), ...decodeMessages(reader)];
  const conversation = create(ConversationSchema, {
    turns,
    tools: decodeTools(reader),
    ...decodeToolChoice(reader, extras),
  });
  const generation = create(GenerationSchema, { model, conversation });
  decodeSampling(reader, generation);
  decodeOutput(reader, generation, extras);
  decodeMetadata(reader, generation, extras);
  generation.stream = reader.flag("stream") ?? false;
  generation.extras = [...extras, ...reader.extras()];
  return keepTexts(generation, reader.longTexts);
}

/** A thread that lives at the vendor cannot be followed across styles. */
function refuseUnservable(reader: JsonReader): void {
  if (reader.has("thread")) {
    throw unsupportedThread();
  }
  const found = unservable.find((name) => reader.has(name));
  if (found !== undefined) {
    throw reader.invalid("is not available for this model: leave it out", found);
  }
}

/** Returns the system text as a separate turn. */
function decodeSystem(reader: JsonReader): Turn[] {
  if (!reader.has("system")) return [];
  const { parts, plain } = decodeContent(reader, "system");
  return [newTurn(Role.SYSTEM, parts, { plain })];
}

function decodeMessages(reader: JsonReader): Turn[] {
  const messages = reader.objects("messages");
  if (messages.length === 0) {
    throw reader.invalid("must be an array with at least one message", "messages");
  }
  return messages.map((message) => {
    const word = message.word("role", roleWords);
    if (word === undefined) throw message.invalid("is missing", "role");
    const { parts, plain } = decodeContent(message, "content");
    const role = roles[word];
    return newTurn(role, parts, { plain, extras: message.extras() });
  });
}

function decodeSampling(reader: JsonReader, generation: Generation): void {
  generation.maxOutputTokens = reader.count("max_tokens");
  generation.temperature = reader.number("temperature", { min: 0, max: 1 });
  generation.topP = reader.number("top_p", { min: 0, max: 1 });
  generation.topK = reader.count("top_k", { min: 0 });
  generation.stop = reader.texts("stop_sequences");
  generation.serviceTier = readServiceTier(reader.text("service_tier"));
}

function decodeMetadata(reader: JsonReader, generation: Generation, extras: Extra[]): void {
  const metadata = reader.object("metadata");
  if (metadata === undefined) return;
  generation.endUser = metadata.text("user_id");
  append(extras, nested("metadata", metadata));
}

/** Reads the amount of thinking and the form of the answer. */
function decodeOutput(reader: JsonReader, generation: Generation, extras: Extra[]): void {
  const config = reader.object("output_config");
  // The older name of the beta; if both are there, the newer one counts.
  const format = config?.object("format") ?? reader.object("output_format");
  const effort = config?.text("effort") ?? "";
  const thinking = decodeThinking(reader, extras);
  if (thinking !== undefined || effort !== "") {
    generation.reasoning = create(GenerationSchema, {
      reasoning: { ...thinking, effort },
    }).reasoning;
  }
  if (format?.text("type") === "json_schema") {
    const schemaJson = format.requiredObject("schema").toJson();
    const type = ResponseFormatType.JSON_SCHEMA;
    generation.responseFormat = create(GenerationSchema, {
      responseFormat: { type, schemaJson },
    }).responseFormat;
  } else if (format !== undefined) {
    throw format.invalid('must be "json_schema"', "type");
  }
  if (config !== undefined) append(extras, nested("output_config", config));
}

function decodeThinking(
  reader: JsonReader,
  extras: Extra[],
): MessageInitShape<typeof ReasoningOptionsSchema> | undefined {
  const thinking = reader.object("thinking");
  if (thinking === undefined) return undefined;
  const type = thinking.text("type");
  const summary = thinking.text("display");
  switch (type) {
    case "disabled":
      return { mode: ReasoningMode.DISABLED };
    case "adaptive":
      return { mode: ReasoningMode.ADAPTIVE, summary };
    case "enabled": {
      const budgetTokens = thinking.count("budget_tokens");
      if (budgetTokens === undefined) throw thinking.invalid("is missing", "budget_tokens");
      return { mode: ReasoningMode.BUDGET, budgetTokens, summary };
    }
    default:
      // `between_tools`, and what is yet to come: the contract has no word for it.
      extras.push(newExtra("thinking", thinking.toJson()));
      return undefined;
  }
}

/** Returns the unread members of an object, each under its path. */
function nested(name: string, reader: JsonReader): Extra[] {
  return reader.extras().map((extra) => newExtra(`${name}.${extra.name}`, extra.json));
}
