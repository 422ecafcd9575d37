/** The client's side of messages: a request body into what it asks for. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  ConversationSchema,
  type Extra,
  ExtraSchema,
  Role,
  type Tool,
  type ToolChoice,
  ToolChoiceMode,
  ToolChoiceSchema,
  ToolSchema,
  type Turn,
  type CacheHint,
  CacheHintSchema,
  type Citation,
  OpaquePartSchema,
  type Part,
  ReasoningSchema,
  ToolType,
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
import {
  newExtra,
  newTurn,
  newPart,
  newText,
  newToolCall,
  newToolResult,
  textPart,
} from "../turns/parts.ts";
import { readServiceTier, type PartKind } from "./wire.ts";
import { parseRecord } from "../../wire/json/value.ts";
import { readCitation } from "./citation.ts";
import { decodeDocument, decodeImage } from "./media.ts";
import { readRedacted, readThinking } from "./reasoning.ts";

const roles = { system: Role.SYSTEM, user: Role.USER, assistant: Role.ASSISTANT } as const;
const roleWords = ["user", "assistant", "system"] as const;

/** Members without which the request would be another one, and which no other style knows. */
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

/** The text above all messages, as a turn of its own. */
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

/** How much to think, and in what form to answer. */
function decodeOutput(reader: JsonReader, generation: Generation, extras: Extra[]): void {
  const config = reader.object("output_config");
  // The older name of the beta; where both are there, the newer one counts.
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

/** What was not read of an object, under the path of each member. */
function nested(name: string, reader: JsonReader): Extra[] {
  return reader.extras().map((extra) => newExtra(`${name}.${extra.name}`, extra.json));
}

// Tools and the choice among them of a request.

/** The tools that the model may call. */
function decodeTools(reader: JsonReader): Tool[] {
  return reader.objects("tools").map(decodeTool);
}

function decodeTool(tool: JsonReader): Tool {
  const type = tool.text("type");
  // Dated ones are the vendor's own: `bash_20250124`, `web_search_20250305` ….
  if (type !== "" && type !== "custom") {
    const value = { dialect: Dialect.MESSAGES, type, json: tool.toJson() };
    return create(ToolSchema, { kind: { case: "opaque", value } });
  }
  const strict = tool.flag("strict");
  const value = {
    name: tool.requiredText("name"),
    description: tool.text("description"),
    parametersJson: tool.requiredObject("input_schema").toJson(),
    ...(strict !== undefined && { strict }),
  };
  const cacheHint = decodeCacheHint(tool);
  return create(ToolSchema, {
    kind: { case: "function", value },
    ...(cacheHint && { cacheHint }),
    extras: tool.extras(),
  });
}

const modes = new Map([
  ["auto", ToolChoiceMode.AUTO],
  ["any", ToolChoiceMode.REQUIRED],
  ["none", ToolChoiceMode.NONE],
]);

/** Which of the tools, and whether several at once. */
interface DecodedToolChoice {
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
}

/** The choice among the tools. What is left over of it goes to `extras`. */
function decodeToolChoice(reader: JsonReader, extras: Extra[]): DecodedToolChoice {
  const choice = reader.object("tool_choice");
  if (choice === undefined) return {};
  const type = choice.requiredText("type");
  const single = choice.flag("disable_parallel_tool_use") === true;
  const toolChoice = readChoice(choice, type);
  for (const { name, json } of toolChoice.opaque === undefined ? choice.extras() : []) {
    extras.push(create(ExtraSchema, { name: `tool_choice.${name}`, json }));
  }
  // That several may be called is the rule: only the exception is worth saying.
  return { toolChoice, ...(single && { parallelToolCalls: false }) };
}

function readChoice(choice: JsonReader, type: string): ToolChoice {
  if (type === "tool") {
    const tool = { name: choice.requiredText("name") };
    return create(ToolChoiceSchema, { mode: ToolChoiceMode.NAMED, tool });
  }
  const mode = modes.get(type);
  if (mode !== undefined) return create(ToolChoiceSchema, { mode });
  const opaque = { dialect: Dialect.MESSAGES, type, json: choice.toJson() };
  return create(ToolChoiceSchema, { opaque });
}

// Content blocks, into parts.

/** Content: parts, and whether they came as one string. */
interface Content {
  readonly parts: Part[];
  readonly plain: boolean;
}

/** Reads a member that is a string or an array of blocks. Absent, it is empty. */
function decodeContent(reader: JsonReader, name: string): Content {
  if (reader.has(name) && !reader.isArray(name)) {
    return { parts: [textPart(reader.text(name))], plain: true };
  }
  return { parts: reader.objects(name).map(decodeBlock), plain: false };
}

function decodeBlock(block: JsonReader): Part {
  const type = block.requiredText("type");
  const kind = decodeKind(block, type);
  // What only this style knows stays whole, its cache hint included.
  if (kind === undefined) return newPart(opaqueKind(block, type));
  const cacheHint = decodeCacheHint(block);
  const part = newPart(kind, block.extras());
  if (cacheHint !== undefined) part.cacheHint = cacheHint;
  return part;
}

function decodeKind(block: JsonReader, type: string): PartKind | undefined {
  switch (type) {
    case "text":
      return { case: "text", value: newText(block.text("text"), decodeCitations(block)) };
    case "image":
      return decodeImage(block);
    case "document":
      return decodeDocument(block);
    case "tool_use":
      return decodeToolUse(block);
    case "tool_result":
      return decodeToolResult(block);
    case "thinking":
      return reasoning(readThinking(block.text("thinking"), block.text("signature")));
    case "redacted_thinking":
      return reasoning(readRedacted(block.text("data")));
    default:
      return undefined;
  }
}

function reasoning(init: MessageInitShape<typeof ReasoningSchema>): PartKind {
  return { case: "reasoning", value: create(ReasoningSchema, init) };
}

function opaqueKind(block: JsonReader, type: string): PartKind {
  const init = { dialect: Dialect.MESSAGES, type, json: block.toJson() };
  return { case: "opaque", value: create(OpaquePartSchema, init) };
}

function decodeCitations(block: JsonReader): Citation[] {
  return block
    .objects("citations")
    .map((citation) => citation.toJson())
    .map((json) => readCitation(parseRecord(json) ?? {}, json));
}

function decodeToolUse(block: JsonReader): PartKind {
  // The SDK sends replies back as they came; that the model called it itself goes without saying.
  if (block.has("caller") && block.object("caller")?.text("type") !== "direct") {
    return opaqueKind(block, "tool_use");
  }
  const id = block.presentText("id");
  const name = block.requiredText("name");
  const input = block.json("input") || "{}";
  return { case: "toolCall", value: newToolCall(ToolType.FUNCTION, { id, name, input }) };
}

function decodeToolResult(block: JsonReader): PartKind {
  const { parts, plain } = decodeContent(block, "content");
  const toolCallId = block.presentText("tool_use_id");
  const isError = block.flag("is_error") ?? false;
  const result = { toolCallId, parts, plain, isError, type: ToolType.FUNCTION };
  return { case: "toolResult", value: newToolResult(result) };
}

/** The hint of a block or a tool; `undefined`: none. */
function decodeCacheHint(block: JsonReader): CacheHint | undefined {
  const control = block.object("cache_control");
  return control && create(CacheHintSchema, { ttl: control.text("ttl") });
}
