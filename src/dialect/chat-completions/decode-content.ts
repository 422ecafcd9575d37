/** Decodes the messages of a request; each becomes a turn. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  CacheHintSchema,
  type MediaPart,
  OpaquePartSchema,
  type Part,
  PartSchema,
  Role,
  type ToolCall,
  ToolType,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { decodeAudio, decodeFile, decodeImage } from "./media.ts";
import { reasoningMembers, signatureMember } from "./reasoning.ts";
import type { JsonReader } from "../reader.ts";
import type { JsonSource } from "../../wire/json/source.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import { newPart, newToolCall, newToolResult, newTurn, textPart } from "../turns/parts.ts";

/** Reads messages in their order. @throws GatewayError INVALID_REQUEST */
export function decodeMessages(messages: readonly JsonReader[]): Turn[] {
  const calls = new LegacyCalls();
  return messages.map((message) => {
    const role = message.requiredText("role");
    switch (role) {
      case "system":
      case "developer":
        return decodeSpoken(message, Role.SYSTEM, role);
      case "user":
        return decodeSpoken(message, Role.USER, "");
      case "assistant":
        return decodeAssistant(message, calls);
      case "tool":
        return decodeToolResult(message);
      case "function":
        return decodeFunctionResult(message, calls);
      default:
        throw message.invalid(
          'must be "system", "developer", "user", "assistant", "tool" or "function"',
          "role",
        );
    }
  });
}

/**
 * Creates IDs for deprecated function calls, which have none, in order, so that results find the
 * call of their name.
 */
class LegacyCalls {
  readonly #ids = new Map<string, string>();
  #count = 0;

  called(name: string): string {
    const id = `call_function_${this.#count++}`;
    this.#ids.set(name, id);
    return id;
  }

  idOf(name: string): string {
    return this.#ids.get(name) ?? this.called(name);
  }
}

function decodeSpoken(message: JsonReader, role: Role, roleWord: string): Turn {
  if (!message.has("content")) throw message.invalid("is missing", "content");
  const { parts, plain } = decodeContent(message);
  const name = message.text("name");
  return newTurn(role, parts, { plain, name, roleWord, extras: message.deepExtras() });
}

function decodeAssistant(message: JsonReader, calls: LegacyCalls): Turn {
  const { parts, plain } = decodeContent(message);
  const refusal = message.text("refusal");
  if (refusal !== "") parts.push(refusalPart(refusal));
  const reasoning = decodeReasoning(message);
  if (reasoning !== undefined) parts.unshift(reasoning);
  for (const call of message.objects("tool_calls")) parts.push(decodeToolCall(call));
  const legacy = message.object("function_call");
  if (legacy !== undefined) {
    const name = legacy.requiredText("name");
    const input = legacy.text("arguments");
    const value = newToolCall(ToolType.FUNCTION, { id: calls.called(name), name, input });
    parts.push(newPart({ case: "toolCall", value }));
  }
  if (message.has("audio")) parts.push(opaque("audio", message.json("audio")));
  const name = message.text("name");
  return newTurn(Role.ASSISTANT, parts, { plain, name, extras: message.deepExtras() });
}

/**
 * Reasoning as compatible vendors write it. It is marked as this style's own, so that no vendor of
 * another style receives it. With a signature it is a block of messages, which a client has from
 * another gateway: it goes back to vendors of that style.
 */
function decodeReasoning(message: JsonReader): Part | undefined {
  const signature = message.isText(signatureMember) ? message.text(signatureMember) : "";
  for (const member of reasoningMembers) {
    const text = message.isText(member) ? message.text(member) : "";
    if (text === "" && signature === "") continue;
    const seal =
      signature === ""
        ? { dialect: Dialect.CHAT_COMPLETIONS, signature: member }
        : { dialect: Dialect.MESSAGES, signature };
    return create(PartSchema, { kind: { case: "reasoning", value: { text, seal } } });
  }
  return undefined;
}

function decodeToolCall(call: JsonReader): Part {
  const value = call.isObject("custom") ? decodeCustomCall(call) : decodeFunctionCall(call);
  return newPart({ case: "toolCall", value }, call.deepExtras());
}

function decodeFunctionCall(call: JsonReader): ToolCall {
  call.word("type", ["function"]);
  const called = call.requiredObject("function");
  // Some clients send arguments as an object instead of its JSON text.
  const input = called.isObject("arguments") ? called.json("arguments") : called.text("arguments");
  const name = called.requiredText("name");
  const id = call.presentText("id");
  return newToolCall(ToolType.FUNCTION, { id, name, input });
}

function decodeCustomCall(call: JsonReader): ToolCall {
  call.word("type", ["custom"]);
  const called = call.requiredObject("custom");
  const name = called.requiredText("name");
  const id = call.presentText("id");
  return newToolCall(ToolType.CUSTOM, { id, name, input: called.text("input") });
}

function decodeToolResult(message: JsonReader): Turn {
  const toolCallId = message.presentText("tool_call_id");
  return resultTurn(message, toolCallId);
}

function decodeFunctionResult(message: JsonReader, calls: LegacyCalls): Turn {
  return resultTurn(message, calls.idOf(message.requiredText("name")));
}

function resultTurn(message: JsonReader, toolCallId: string): Turn {
  const { parts, plain } = decodeContent(message);
  const value = newToolResult({ toolCallId, parts, plain, name: message.text("name") });
  return newTurn(Role.USER, [newPart({ case: "toolResult", value }, message.deepExtras())]);
}

interface Content {
  readonly parts: Part[];
  /** Whether it was a string or absent. */
  readonly plain: boolean;
}

function decodeContent(message: JsonReader): Content {
  if (!message.has("content")) {
    message.value("content");
    return { parts: [], plain: true };
  }
  if (message.isText("content")) return { parts: [textPart(message.text("content"))], plain: true };
  if (!message.isArray("content")) {
    throw message.invalid("must be a string or an array of parts", "content");
  }
  return { parts: message.objects("content").map(decodePart), plain: false };
}

function decodePart(part: JsonReader): Part {
  const decoded = decodeKind(part);
  const breakpoint = part.object("prompt_cache_breakpoint");
  breakpoint?.word("mode", ["explicit"]);
  if (breakpoint) decoded.cacheHint = create(CacheHintSchema, { ttl: breakpoint.text("ttl") });
  // An opaque part contains all of it.
  if (decoded.kind.case !== "opaque") decoded.extras = part.deepExtras();
  return decoded;
}

function decodeKind(part: JsonReader): Part {
  const type = part.requiredText("type");
  switch (type) {
    case "text":
      return textPart(part.text("text"));
    case "refusal":
      return refusalPart(part.text(part.has("refusal") ? "refusal" : "text"));
    case "image_url":
      return media(decodeImage(part));
    case "input_audio":
      return media(decodeAudio(part));
    case "file":
      return media(decodeFile(part));
    default:
      return opaque(type, part.toJson());
  }
}

function refusalPart(value: string): Part {
  return create(PartSchema, { kind: { case: "refusal", value: { text: value } } });
}

function media(value: MediaPart): Part {
  return newPart({ case: "media", value });
}

function opaque(type: string, json: string): Part {
  const value = create(OpaquePartSchema, { dialect: Dialect.CHAT_COMPLETIONS, type, json });
  return create(PartSchema, { kind: { case: "opaque", value } });
}

/** The input of a call; some vendors write an object instead of its text. */
export function readInput(called: JsonRecord, member: string, source: JsonSource): string {
  const value = called[member];
  if (typeof value === "string") return value;
  return typeof value === "object" && value !== null ? source.textOf(value) : "";
}
