/** Parts of a conversation, into content blocks for a vendor. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Part,
  type Reasoning,
  type TextPart,
  type ToolCall,
  type ToolResult,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";
import { wrapCustomInput } from "../tools/custom-tools.ts";
import { type JsonBranch, JsonText, type JsonTree } from "../../wire/json/json-tree.ts";
import { parseRecord } from "../../wire/json/value.ts";
import type { EncodeContext } from "./encode-context.ts";
import { wireToolName } from "./encode-tools.ts";
import { encodeMedia } from "./media.ts";
import { legalToolId } from "./wire.ts";

/** A block and what its place in a message depends on. */
export interface Block {
  readonly type: "tool_use" | "tool_result" | "thinking" | "other";
  readonly json: JsonTree;
  /** `tool_use` and `tool_result`: the call's id, as it is sent. Otherwise empty. */
  readonly id: string;
}

/**
 * The block for a part; `undefined` if there is nothing to be sent: the vendor refuses empty texts,
 * and reasoning that it has not sealed itself.
 */
export function encodePart(part: Part, writer: EncodeContext): Block | undefined {
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
      throw invalid(
        "messages",
        "A part of a message has no content: send text, media or a tool call",
      );
  }
}

function other(json: JsonTree | undefined): Block | undefined {
  return json === undefined ? undefined : { type: "other", json, id: "" };
}

function block(type: string, { text }: { text: string }, part: Part, writer: EncodeContext) {
  return withMembers({ type, text }, part, writer);
}

function withMembers(members: JsonBranch, part: Part, writer: EncodeContext): JsonBranch {
  if (part.cacheHint === undefined && part.extras.length === 0) return members;
  return { ...members, ...writer.cacheControl(part.cacheHint), ...writer.extras(part.extras) };
}

function encodeText({ text, citations }: TextPart, part: Part, writer: EncodeContext) {
  if (text === "") return undefined;
  if (citations.length === 0) return withMembers({ type: "text", text }, part, writer);
  const own = citations.filter(({ dialect }) => writer.isOwn && dialect === Dialect.MESSAGES);
  if (own.length < citations.length) writer.drop("citations");
  const cited = own.length > 0 && { citations: own.map(({ json }) => new JsonText(json)) };
  return withMembers({ type: "text", text, ...cited }, part, writer);
}

function encodeToolCall(call: ToolCall, part: Part, writer: EncodeContext): Block {
  const id = legalToolId(call.id);
  const name = wireToolName(call);
  const input = new JsonText(toolInput(call));
  return {
    type: "tool_use",
    json: withMembers({ type: "tool_use", id, name, input }, part, writer),
    id,
  };
}

/**
 * A call's input as an object. What the model wrote may be cut short: the vendor takes objects
 * only.
 */
export function toolInput({ type, input }: Pick<ToolCall, "type" | "input">): string {
  if (type === ToolType.CUSTOM) return wrapCustomInput(input);
  return parseRecord(input) === undefined ? "{}" : input;
}

function encodeToolResult(result: ToolResult, part: Part, writer: EncodeContext): Block {
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

function resultContent(result: ToolResult, writer: EncodeContext): JsonTree | undefined {
  const [first, ...rest] = result.parts;
  if (first === undefined) return undefined;
  if (result.plain && rest.length === 0 && first.kind.case === "text") return first.kind.value.text;
  const blocks = result.parts.map((part) => encodePart(part, writer));
  const content = blocks.flatMap((each) => (each === undefined ? [] : [each.json]));
  return content.length === 0 ? undefined : content;
}

/**
 * Reasoning with the vendor's own seal. A foreign one means nothing to this vendor, and text
 * without a seal is refused: both stay behind.
 */
function encodeReasoning(
  { text, seal }: Reasoning,
  part: Part,
  writer: EncodeContext,
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
