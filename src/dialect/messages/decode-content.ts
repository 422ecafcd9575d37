/** Content blocks, into parts. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type CacheHint,
  CacheHintSchema,
  type Citation,
  OpaquePartSchema,
  type Part,
  ReasoningSchema,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { JsonReader } from "../reader.ts";
import { newPart, newText, newToolCall, newToolResult, textPart } from "../turns/parts.ts";
import type { PartKind } from "./wire.ts";
import { parseRecord } from "../../wire/json/value.ts";
import { readCitation } from "./citation.ts";
import { decodeDocument, decodeImage } from "./media.ts";
import { readRedacted, readThinking } from "./reasoning.ts";

/** Content: parts, and whether they came as one string. */
interface Content {
  readonly parts: Part[];
  readonly plain: boolean;
}

/** Reads a member that is a string or an array of blocks. Absent, it is empty. */
export function decodeContent(reader: JsonReader, name: string): Content {
  if (reader.has(name) && !reader.isArray(name)) {
    return { parts: [textPart(reader.text(name))], plain: true };
  }
  return { parts: reader.objects(name).map(decodeBlock), plain: false };
}

function decodeBlock(block: JsonReader): Part {
  const type = block.requiredText("type");
  const kind = decodeKind(block, type);
  // Blocks specific to this style stay whole, with their cache hints.
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

/** The hint of a block or a tool; undefined if there is none. */
export function decodeCacheHint(block: JsonReader): CacheHint | undefined {
  const control = block.object("cache_control");
  return control && create(CacheHintSchema, { ttl: control.text("ttl") });
}
