/** The content parts of responses messages and tool results, read from a request. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type CacheHint,
  CacheHintSchema,
  type Extra,
  OpaquePartSchema,
  type Part,
  type Reasoning,
  ReasoningSchema,
  ReasoningSealSchema,
  Role,
  ToolType,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { JsonReader } from "../reader.ts";
import { parseRecord } from "../../wire/json/value.ts";
import {
  newExtra,
  newPart,
  newText,
  newToolCall,
  newToolResult,
  newTurn,
  textPart,
} from "../turns/parts.ts";
import { decodeCitation } from "./citation.ts";
import { summaryTurn } from "./compaction.ts";
import { decodeMedia } from "./media.ts";
import { openSeal } from "../turns/seal.ts";

/** Content of a member that is a string or an array of content parts. */
interface Content {
  readonly parts: Part[];
  /** Whether it was a string. */
  readonly plain: boolean;
}

/** Reads a member that is a string or an array of content parts. */
function decodeContent(item: JsonReader, name: string): Content {
  const value = item.value(name);
  if (typeof value === "string") return { parts: [textPart(value)], plain: true };
  if (!item.isArray(name)) throw item.invalid("must be a string or an array of parts", name);
  return { parts: item.objects(name).map(decodePart), plain: false };
}

function decodePart(part: JsonReader): Part {
  const kind = partKind(part);
  // An opaque part has all of it.
  if (kind.case === "opaque") return newPart(kind);
  const { cacheHint, extra } = decodeBreakpoint(part);
  const decoded = newPart(kind, extrasOf(part));
  if (cacheHint !== undefined) decoded.cacheHint = cacheHint;
  if (extra !== undefined) decoded.extras.push(extra);
  return decoded;
}

/**
 * Reads the end of a cached prefix: as a hint, or whole if it has more members than the contract
 * can carry.
 */
function decodeBreakpoint(part: JsonReader): { cacheHint?: CacheHint; extra?: Extra } {
  const name = "prompt_cache_breakpoint";
  const json = part.json(name);
  if (json === "") return {};
  const { mode, ttl, ...others } = parseRecord(json) ?? {};
  const isKnown = mode === "explicit" && (ttl === undefined || typeof ttl === "string");
  if (!isKnown || Object.keys(others).length > 0) {
    return { extra: newExtra(name, json) };
  }
  return { cacheHint: create(CacheHintSchema, { ttl: ttl ?? "" }) };
}

/** Default members of items and parts; clients send them back unchanged. */
const silent: ReadonlySet<string> = new Set(['status:"completed"', "logprobs:[]"]);

/** The members of an item or part that were not read. */
function extrasOf(reader: JsonReader): Extra[] {
  const extras = reader.extras();
  if (extras.length === 0) return extras;
  return extras.filter(({ name, json }) => !silent.has(`${name}:${json}`));
}

function partKind(part: JsonReader): Part["kind"] {
  const type = part.requiredText("type");
  switch (type) {
    case "input_text":
      return { case: "text", value: newText(part.presentText("text")) };
    case "output_text": {
      const citations = part.objects("annotations").map((each) => decodeCitation(each.toJson()));
      return { case: "text", value: newText(part.presentText("text"), citations) };
    }
    case "refusal": {
      // Some clients use the member name of other parts for its text.
      const text = part.presentText(part.has("text") ? "text" : "refusal");
      return { case: "refusal", value: { $typeName: "uas.inference.v1.RefusalPart", text } };
    }
    default: {
      const media = decodeMedia(part);
      if (media !== undefined) return { case: "media", value: media };
    }
  }
  return opaqueContent(part, type);
}

/** Prefix of all content types; types of items never have it. */
export const contentType = /^(?:input|output)_/;

function opaqueContent(part: JsonReader, type: string): Part["kind"] {
  if (!contentType.test(type)) throw part.invalid(`"${type}" is not a known type`, "type");
  part.readAll();
  return {
    case: "opaque",
    value: {
      $typeName: "uas.inference.v1.OpaquePart",
      dialect: Dialect.RESPONSES,
      type,
      json: part.toJson(),
    },
  };
}

/**
 * Reads an item of `input`.
 *
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export function decodeItem(item: JsonReader): Turn {
  // A reference may leave out its type, and so may a message.
  const type =
    item.text("type") || (item.has("id") && !item.has("role") ? "item_reference" : "message");
  switch (type) {
    case "message":
      return messageTurn(item);
    case "function_call":
      return callTurn(item, ToolType.FUNCTION);
    case "custom_tool_call":
      return callTurn(item, ToolType.CUSTOM);
    case "function_call_output":
      return resultTurn(item, ToolType.FUNCTION);
    case "custom_tool_call_output":
      return resultTurn(item, ToolType.CUSTOM);
    case "reasoning":
      return turnOf(Role.ASSISTANT, item, { case: "reasoning", value: decodeReasoning(item) });
    default:
      return summaryTurn(item, type) ?? opaqueTurn(item, type);
  }
}

/** Instructions as the turn that they begin the conversation with. */
export function instructionsTurn(text: string): Turn {
  return newTurn(Role.SYSTEM, [textPart(text)], { roleWord: "instructions", plain: true });
}

const roles = {
  user: Role.USER,
  assistant: Role.ASSISTANT,
  system: Role.SYSTEM,
  developer: Role.SYSTEM,
} as const;

const roleWords = ["user", "assistant", "system", "developer"] as const;

function messageTurn(item: JsonReader): Turn {
  const word = item.word("role", roleWords);
  if (word === undefined) throw item.invalid("is missing", "role");
  const role = roles[word];
  const roleWord = role === Role.SYSTEM ? word : "";
  const itemId = item.text("id");
  const { parts, plain } = decodeContent(item, "content");
  return newTurn(role, parts, { roleWord, itemId, plain, extras: extrasOf(item) });
}

function callTurn(item: JsonReader, type: ToolType): Turn {
  const member = type === ToolType.CUSTOM ? "input" : "arguments";
  return turnOf(Role.ASSISTANT, item, {
    case: "toolCall",
    value: newToolCall(type, {
      id: item.presentText("call_id"),
      name: item.requiredText("name"),
      input: item.text(member),
      namespace: item.text("namespace"),
      itemId: item.text("id"),
    }),
  });
}

function resultTurn(item: JsonReader, type: ToolType): Turn {
  return turnOf(Role.USER, item, {
    case: "toolResult",
    value: newToolResult({
      toolCallId: item.presentText("call_id"),
      type,
      itemId: item.text("id"),
      ...decodeContent(item, "output"),
    }),
  });
}

function decodeReasoning(item: JsonReader): Reasoning {
  const opaque = item.text("encrypted_content");
  const summaries = item.objects("summary").map((part) => part.text("text"));
  const content = item.objects("content").map((part) => part.text("text"));
  const itemId = item.text("id");
  const opened = opaque === "" ? undefined : openSeal(opaque);
  if (opened !== undefined) {
    const { seal, ...shown } = opened;
    return create(ReasoningSchema, { ...shown, ...(seal && { seal }) });
  }
  return create(ReasoningSchema, {
    text: content.join(""),
    summaries,
    itemId,
    ...(opaque && {
      seal: create(ReasoningSealSchema, { dialect: Dialect.RESPONSES, data: opaque }),
    }),
  });
}

const systemTypes: ReadonlySet<string> = new Set([
  "additional_tools",
  "configuration_update",
  "compaction_trigger",
]);

/** A built-in tool's call or result, a reference, or something newer than this gateway. */
function opaqueTurn(item: JsonReader, type: string): Turn {
  // All of it is in the part: nothing is left over.
  item.readAll();
  const isResult = type.endsWith("_output") || type === "mcp_approval_response";
  const role = isResult ? Role.USER : systemTypes.has(type) ? Role.SYSTEM : Role.ASSISTANT;
  const init = { dialect: Dialect.RESPONSES, type, json: item.toJson() };
  return turnOf(role, item, { case: "opaque", value: create(OpaquePartSchema, init) });
}

function turnOf(role: Role, item: JsonReader, kind: Part["kind"]): Turn {
  return newTurn(role, [newPart(kind, extrasOf(item))]);
}
