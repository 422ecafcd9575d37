/** A responses request, read in full: the caller's side. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  ConversationSchema,
  type Extra,
  ExtraSchema,
  type OpaquePart,
  OpaquePartSchema,
  Role,
  type Tool,
  type ToolChoice,
  ToolChoiceMode,
  ToolChoiceSchema,
  type ToolName,
  ToolNameSchema,
  ToolSchema,
  ToolType,
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

/** What asks a vendor to hand reasoning out in unreadable form. */
export const encryptedReasoning = "reasoning.encrypted_content";

/**
 * Implements {@link CallerCodec.decodeRequest}. Members of `reasoning` and `text` that the contract does not know
 * become extras with their path as the name: `reasoning.context`.
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

/** What would run, or be kept, at one vendor. */
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

// The tools of a responses request, and which of them the model may call.

/** Reads `tools`. The tools of a namespace follow each other, each with the namespace's name. */
function decodeTools(body: JsonReader): Tool[] {
  return body.objects("tools").flatMap((tool) => decodeTool(tool));
}

function decodeTool(tool: JsonReader): Tool[] {
  if (tool.requiredText("type") !== "namespace") return [plainTool(tool)];
  const namespace = tool.requiredText("name");
  const namespaceDescription = tool.text("description");
  const tools = tool.objects("tools");
  // A member that nobody knows belongs to none of the tools: it goes with the namespace as a whole.
  if (tools.length === 0 || tool.extras().length > 0) return [opaqueTool(tool)];
  return tools.map((inner) => ({ ...plainTool(inner), namespace, namespaceDescription }));
}

function plainTool(tool: JsonReader): Tool {
  switch (tool.requiredText("type")) {
    case "function": {
      const name = tool.requiredText("name");
      const description = tool.text("description");
      const parametersJson = tool.object("parameters")?.toJson() ?? "";
      const strict = tool.flag("strict");
      const value = { name, description, parametersJson, ...(strict !== undefined && { strict }) };
      return create(ToolSchema, { kind: { case: "function", value }, extras: tool.extras() });
    }
    case "custom": {
      const value = {
        name: tool.requiredText("name"),
        description: tool.text("description"),
        formatJson: tool.object("format")?.toJson() ?? "",
      };
      return create(ToolSchema, { kind: { case: "custom", value }, extras: tool.extras() });
    }
    default:
      return opaqueTool(tool);
  }
}

function opaqueTool(tool: JsonReader): Tool {
  return create(ToolSchema, { kind: { case: "opaque", value: opaqueOf(tool) } });
}

function opaqueOf(reader: JsonReader): OpaquePart {
  return create(OpaquePartSchema, {
    dialect: Dialect.RESPONSES,
    type: reader.requiredText("type"),
    json: reader.toJson(),
  });
}

const modes = {
  auto: ToolChoiceMode.AUTO,
  none: ToolChoiceMode.NONE,
  required: ToolChoiceMode.REQUIRED,
} as const;

const modeWords = ["auto", "none", "required"] as const;

/** Reads `tool_choice`; `undefined` where it is absent. */
function decodeToolChoice(body: JsonReader): ToolChoice | undefined {
  const value = body.value("tool_choice");
  if (value === undefined) return undefined;
  if (typeof value === "string") {
    const word = body.word("tool_choice", modeWords) ?? "auto";
    return create(ToolChoiceSchema, { mode: modes[word] });
  }
  const choice = body.requiredObject("tool_choice");
  const named = toolName(choice);
  if (named !== undefined) {
    return create(ToolChoiceSchema, { mode: ToolChoiceMode.NAMED, tool: named });
  }
  return allowedTools(choice) ?? create(ToolChoiceSchema, { opaque: opaqueOf(choice) });
}

/** `undefined` where all of them cannot be named. */
function allowedTools(choice: JsonReader): ToolChoice | undefined {
  if (choice.text("type") !== "allowed_tools") return undefined;
  const word = choice.word("mode", ["auto", "required"]) ?? "auto";
  const tools = choice.objects("tools");
  const allowed = tools.map(toolName).filter((name) => name !== undefined);
  if (allowed.length < tools.length || allowed.length === 0 || choice.extras().length > 0) {
    return undefined;
  }
  return create(ToolChoiceSchema, { mode: modes[word], allowed });
}

/** `undefined` where it is none of the caller's own tools, or says more than the name. */
function toolName(tool: JsonReader): ToolName | undefined {
  const type = tool.text("type");
  if (type !== "function" && type !== "custom") return undefined;
  const name = create(ToolNameSchema, {
    name: tool.requiredText("name"),
    type: type === "custom" ? ToolType.CUSTOM : ToolType.FUNCTION,
  });
  return tool.extras().length > 0 ? undefined : name;
}
