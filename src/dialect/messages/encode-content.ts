/** Parts of a conversation, into content blocks for a vendor. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  ToolType,
  MediaType,
  type Part,
  type Reasoning,
  type TextPart,
  type ToolCall,
  type ToolResult,
  type MediaPart,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { wrapCustomInput } from "../custom-tools.ts";
import { parseRecord } from "../json/value.ts";
import { wireToolName } from "./encode-tools.ts";
import { JsonText, type JsonBranch, type JsonTree } from "./json-text.ts";
import { refused, type RequestWriter } from "./request-writer.ts";
import { legalToolId } from "./wire.ts";

/** A block and what its place in a message depends on. */
export interface Block {
  readonly type: "tool_use" | "tool_result" | "thinking" | "other";
  readonly json: JsonTree;
  /** `tool_use` and `tool_result`: the call's id, as it is sent. Otherwise empty. */
  readonly id: string;
}

/** The block for a part; `undefined` where there is nothing to be sent: the vendor refuses empty texts, and
 * reasoning that it has not sealed itself. */
export function encodePart(part: Part, writer: RequestWriter): Block | undefined {
  const { kind } = part;
  switch (kind.case) {
    case "text":
      return other(encodeText(kind.value, part, writer));
    case "refusal":
      return kind.value.text === "" ? undefined : other(block("text", kind.value, part, writer));
    case "media":
      return other(withMembers(encodeMedia(kind.value, writer), part, writer));
    case "toolCall":
      return encodeToolCall(kind.value, part, writer);
    case "toolResult":
      return encodeToolResult(kind.value, part, writer);
    case "reasoning":
      return encodeReasoning(kind.value, part, writer);
    case "opaque":
      return other(writer.opaque(kind.value, "messages"));
    case undefined:
    default:
      throw refused(
        "A part of a message has no content: send text, media or a tool call",
        "messages",
      );
  }
}

function other(json: JsonTree | undefined): Block | undefined {
  return json === undefined ? undefined : { type: "other", json, id: "" };
}

function block(type: string, { text }: { text: string }, part: Part, writer: RequestWriter) {
  return withMembers({ type, text }, part, writer);
}

function withMembers(members: JsonBranch, part: Part, writer: RequestWriter): JsonBranch {
  if (part.cacheHint === undefined && part.extras.length === 0) return members;
  return { ...members, ...writer.cacheControl(part.cacheHint), ...writer.extras(part.extras) };
}

function encodeText({ text, citations }: TextPart, part: Part, writer: RequestWriter) {
  if (text === "") return undefined;
  if (citations.length === 0) return withMembers({ type: "text", text }, part, writer);
  const own = citations.filter(({ dialect }) => writer.isOwn && dialect === Dialect.MESSAGES);
  if (own.length < citations.length) writer.drop("citations");
  const cited = own.length > 0 && { citations: own.map(({ json }) => new JsonText(json)) };
  return withMembers({ type: "text", text, ...cited }, part, writer);
}

function encodeToolCall(call: ToolCall, part: Part, writer: RequestWriter): Block {
  const id = legalToolId(call.id);
  const name = wireToolName(call);
  const input = new JsonText(toolInput(call));
  return {
    type: "tool_use",
    json: withMembers({ type: "tool_use", id, name, input }, part, writer),
    id,
  };
}

/** A call's input as an object. What the model wrote may be cut short: the vendor takes objects only. */
export function toolInput({ type, input }: Pick<ToolCall, "type" | "input">): string {
  if (type === ToolType.CUSTOM) return wrapCustomInput(input);
  return parseRecord(input) === undefined ? "{}" : input;
}

function encodeToolResult(result: ToolResult, part: Part, writer: RequestWriter): Block {
  const id = legalToolId(result.toolCallId);
  const content = resultContent(result, writer);
  const json = {
    type: "tool_result",
    tool_use_id: id,
    ...(content !== undefined && { content }),
    ...(result.isError && { is_error: true }),
  };
  return { type: "tool_result", json: withMembers(json, part, writer), id };
}

function resultContent(result: ToolResult, writer: RequestWriter): JsonTree | undefined {
  const [first, ...rest] = result.parts;
  if (first === undefined) return undefined;
  if (result.plain && rest.length === 0 && first.kind.case === "text") return first.kind.value.text;
  const blocks = result.parts.map((part) => encodePart(part, writer));
  const content = blocks.flatMap((each) => (each === undefined ? [] : [each.json]));
  return content.length === 0 ? undefined : content;
}

/** Reasoning with the vendor's own seal. A foreign one means nothing to this vendor, and text without a seal
 * is refused: both stay behind. */
function encodeReasoning(
  { text, seal }: Reasoning,
  part: Part,
  writer: RequestWriter,
): Block | undefined {
  if (seal?.dialect !== Dialect.MESSAGES) {
    writer.drop("turns.reasoning");
    return undefined;
  }
  const { signature, data } = seal;
  const json =
    data === ""
      ? { type: "thinking", thinking: text, signature }
      : { type: "redacted_thinking", data };
  return { type: "thinking", json: withMembers(json, part, writer), id: "" };
}

/* Pictures and documents, into blocks for a vendor. */

/** How the base64 of a file begins, for files whose type was not told. */
const beginnings: readonly (readonly [string, string])[] = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
  ["JVBER", "application/pdf"],
];

/** The block. @throws GatewayError INVALID_REQUEST for what the style has no block for */
function encodeMedia(media: MediaPart, writer: RequestWriter): JsonBranch {
  if (media.source.case === "fileId" && !writer.isOwn) {
    throw refused(
      "A file id of another vendor means nothing to this model: send the file itself or its address",
      "file_id",
    );
  }
  if (media.detail !== "" && media.detail !== "auto") writer.drop("detail");
  switch (media.type) {
    case MediaType.IMAGE:
      return { type: "image", source: imageSource(media) };
    case MediaType.DOCUMENT:
      return encodeDocument(media);
    case MediaType.AUDIO:
      throw refused("This model takes no audio: send text, pictures or documents", "input_audio");
    case MediaType.UNSPECIFIED:
    default:
      throw refused("The type of a media part is missing", "type");
  }
}

function mimeTypeOf({ mimeType, source }: MediaPart): string {
  if (mimeType !== "" || source.case !== "base64") return mimeType;
  return beginnings.find(([start]) => source.value.startsWith(start))?.[1] ?? "";
}

function imageSource(media: MediaPart): JsonBranch {
  const { source } = media;
  switch (source.case) {
    case "base64": {
      const media_type = mimeTypeOf(media);
      if (media_type === "") throw refused("The media type of a picture is missing", "media_type");
      return { type: "base64", media_type, data: source.value };
    }
    case "url":
      return { type: "url", url: source.value };
    case "fileId":
      return { type: "file", file_id: source.value };
    case "text":
    case undefined:
    default:
      throw refused("A picture has no source: send its bytes or its address", "image");
  }
}

function encodeDocument(media: MediaPart): JsonBranch {
  const mimeType = mimeTypeOf(media);
  if (mimeType.startsWith("image/")) return { type: "image", source: imageSource(media) };
  const title = media.title || media.filename;
  return {
    type: "document",
    source: documentSource(media, mimeType),
    ...(title && { title }),
    ...(media.context && { context: media.context }),
    ...(media.citations && { citations: { enabled: true } }),
  };
}

function documentSource({ source }: MediaPart, mimeType: string): JsonBranch {
  switch (source.case) {
    case "base64":
      if (isText(mimeType)) return textSource(Buffer.from(source.value, "base64").toString());
      if (mimeType === "application/pdf") {
        return { type: "base64", media_type: mimeType, data: source.value };
      }
      throw refused(
        `Documents of type "${mimeType}" are not taken by this model: send PDF or plain text`,
        "media_type",
      );
    case "url":
      return { type: "url", url: source.value };
    case "fileId":
      return { type: "file", file_id: source.value };
    case "text":
      return textSource(source.value);
    case undefined:
    default:
      throw refused("A document has no source: send its bytes, text or address", "document");
  }
}

function textSource(data: string): JsonBranch {
  return { type: "text", media_type: "text/plain", data };
}

function isText(mimeType: string): boolean {
  return mimeType.startsWith("text/") || mimeType === "application/json";
}
