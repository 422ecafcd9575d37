/**
 * Converts content that only one style supports to text: searches, code runs and other vendor
 * tools, references to tools. A conversation with such content can then continue at another vendor,
 * whose model reads it as text. Pure.
 */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  MediaPartSchema,
  MediaType,
  type OpaquePart,
  type Part,
  Role,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  isRecord,
  type JsonRecord,
  parseRecord,
  recordAt,
  recordsAt,
  textAt,
} from "../../wire/json/value.ts";
import { memberOf } from "../../wire/json/source.ts";
import { mediaType } from "../../core/media-type.ts";
import { newPart, newToolCall, textPart } from "./parts.ts";

/** Blocks of messages that are no content of the user's own, or that have a text. */
const messagesTypes =
  /^(?:search_result|document|tool_reference|browser_state|compaction|fallback|container_upload|tool_(?:addition|removal)|mcp_tool_listing|\w+_tool_use|\w+_tool_result)$/;

/**
 * Items of responses that record calls of the vendor's tools. Others refer to something that it
 * stores.
 */
const responsesTypes =
  /_(?:call|call_output|output|list_tools|approval_request|approval_response)$/;

/**
 * Returns the parts that replace an opaque part of another style. Undefined if it cannot be omitted
 * without changing the question.
 *
 * @param place the role of its turn; undefined in the result of a tool
 * @param drop called with the name of content that has no text
 */
export function portableParts(
  { dialect, type, json }: OpaquePart,
  place: Role | undefined,
  drop: (name: string) => void,
): readonly Part[] | undefined {
  if (!isHistory(dialect, type, place)) return undefined;
  const record = parseRecord(json) ?? {};
  if (dialect === Dialect.MESSAGES && type === "tool_use") return [toolCall(record, json)];
  if (type === "document") return documentParts(record);
  const lines: string[] = [];
  if (type === "tool_reference")
    lines.push(`The tool "${textAt(record, "tool_name")}" is available.`);
  else {
    collect(record, lines);
    if (isRecord(record["input"])) lines.push(memberOf(json, "input"));
  }
  const text = lines.join("\n");
  if (text.trim() !== "") return [textPart(text)];
  drop(type);
  return [];
}

function isHistory(dialect: Dialect, type: string, place: Role | undefined): boolean {
  if (dialect === Dialect.RESPONSES) return responsesTypes.test(type);
  return dialect === Dialect.MESSAGES && (place !== Role.USER || messagesTypes.test(type));
}

/** A call from a program of the model; other vendors treat it like any call. */
function toolCall(record: JsonRecord, json: string): Part {
  const input = memberOf(json, "input") || "{}";
  const call = { id: textAt(record, "id"), name: textAt(record, "name"), input };
  return newPart({ case: "toolCall", value: newToolCall(ToolType.FUNCTION, call) });
}

/** A document in blocks: its texts and images. `undefined` for a source that is not known here. */
function documentParts(record: JsonRecord): readonly Part[] | undefined {
  const source = recordAt(record, "source") ?? {};
  if (source["type"] !== "content") return undefined;
  const heads = [textAt(record, "title"), textAt(record, "context")].filter((text) => text !== "");
  const blocks = recordsAt(source, "content").map((block) =>
    block["type"] === "image" ? imagePart(recordAt(block, "source") ?? {}) : textOf(block),
  );
  return blocks.every((part) => part !== undefined)
    ? [...heads.map(textPart), ...blocks]
    : undefined;
}

function textOf(block: JsonRecord): Part | undefined {
  return typeof block["text"] === "string" ? textPart(block["text"]) : undefined;
}

function imagePart(source: JsonRecord): Part | undefined {
  const data = textAt(source, "data");
  const url = textAt(source, "url");
  if (data === "" && url === "") return undefined;
  const value = create(MediaPartSchema, {
    type: MediaType.IMAGE,
    mimeType: mediaType(textAt(source, "media_type")),
    source: data === "" ? { case: "url", value: url } : { case: "base64", value: data },
  });
  return newPart({ case: "media", value });
}

/**
 * Members whose texts a model can use; all others are ids, settings and what only their vendor can
 * read.
 */
const shown: ReadonlySet<string> = new Set([
  "name",
  "tool_name",
  "server_name",
  "server_label",
  "title",
  "url",
  "source",
  "sources",
  "text",
  "content",
  "stdout",
  "stderr",
  "logs",
  "output",
  "outputs",
  "result",
  "results",
  "error",
  "error_code",
  "error_message",
  "message",
  "query",
  "queries",
  "code",
  "command",
  "commands",
  "arguments",
  "action",
  "operation",
  "path",
  "diff",
  "filename",
  "tool_references",
  "tabs",
]);

/** Adds the texts of a value, in their order. */
function collect(value: unknown, lines: string[]): void {
  if (typeof value === "string") {
    if (value !== "") lines.push(value);
  } else if (Array.isArray(value)) {
    for (const each of value) collect(each, lines);
  } else if (isRecord(value)) collectMembers(value, lines);
}

function collectMembers(record: JsonRecord, lines: string[]): void {
  const { type } = record;
  // Their text is base64.
  if (type === "base64" || type === "image_generation_call") return;
  for (const [name, member] of Object.entries(record)) {
    if (shown.has(name)) collect(member, lines);
    else if (name === "data" && type === "text") collect(member, lines);
  }
}
