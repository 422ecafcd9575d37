/** What stands in messages for a vendor: content, calls and results. */
import { createHash } from "node:crypto";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type OpaquePart,
  type Part,
  type Reasoning,
  type ToolCall,
  type ToolResult,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../body-members.ts";
import { chatToolName } from "./encode-tools.ts";
import { encodeMedia } from "./media.ts";
import { reasoningMembers } from "./reasoning.ts";
import { parseJson, type WireBody } from "./wire-body.ts";

/** An object on the wire. */
export type Wire = Record<string, unknown>;

/**
 * A part as parts of a message's content.
 *
 * @throws GatewayError INVALID_REQUEST where content cannot hold it
 */
export function encodePart(part: Part, wire: WireBody): Wire[] {
  const encoded = encodeKind(part, wire);
  const last = encoded.at(-1);
  if (part.cacheHint !== undefined) {
    const { ttl } = part.cacheHint;
    if (!wire.isOwn) wire.drop("cache_hint");
    else if (last) last["prompt_cache_breakpoint"] = { mode: "explicit", ...(ttl && { ttl }) };
  }
  if (last !== undefined) wire.writeExtras(last, part.extras);
  return encoded;
}

function encodeKind({ kind }: Part, wire: WireBody): Wire[] {
  switch (kind.case) {
    case "text":
      if (kind.value.citations.length > 0) wire.drop("citations");
      return [{ type: "text", text: kind.value.text }];
    case "refusal":
      return [{ type: "refusal", refusal: kind.value.text }];
    case "media":
      return encodeMedia(kind.value, { isOwn: wire.isOwn, drop: (name) => wire.drop(name) });
    case "opaque":
      return [encodeOpaque(kind.value)];
    case "toolCall":
    case "toolResult":
    case "reasoning":
    case undefined:
    default:
      throw invalid(`A part "${kind.case ?? "without kind"}" cannot stand here`, "messages");
  }
}

/** An opaque part as it was. @throws GatewayError INVALID_REQUEST where it is of another style */
export function encodeOpaque({ dialect, type, json }: OpaquePart): Wire {
  if (dialect === Dialect.CHAT_COMPLETIONS) return parseJson(json, "messages") as Wire;
  throw invalid(
    `The model's vendor cannot read "${type}"; leave it out, or use a model whose vendor can`,
    "messages",
  );
}

/** A call as the model made it. */
export function encodeCall(call: ToolCall, part: Part, wire: WireBody): Wire {
  const { name, namespace, input } = call;
  const id = callId(call.id, wire);
  const wireName = chatToolName({ name, namespace });
  const encoded: Wire =
    call.type === ToolType.CUSTOM
      ? { id, type: "custom", custom: { name: wireName, input } }
      : {
          id,
          type: "function",
          // Of other styles' calls nothing may be left; vendors of this one parse it.
          function: { name: wireName, arguments: input === "" && !wire.isOwn ? "{}" : input },
        };
  if (part.cacheHint) wire.drop("cache_hint");
  wire.writeExtras(encoded, part.extras);
  return encoded;
}

/** A result as a message, and what of it only a user's message can hold. */
export interface EncodedResult {
  readonly message: Wire;
  /** Pictures and files, as parts of content. */
  readonly attachments: readonly Wire[];
}

/** What a tool answered. */
export function encodeResult(result: ToolResult, part: Part, wire: WireBody): EncodedResult {
  const id = callId(result.toolCallId, wire);
  const pieces = result.parts.flatMap((each) => encodePart(each, wire));
  if (part.cacheHint) wire.drop("cache_hint");
  const message: Wire = { role: "tool", tool_call_id: id };
  if (result.name && wire.isOwn) message["name"] = result.name;
  if (wire.isOwn) {
    message["content"] = result.plain ? textsOf(pieces).join("") : pieces;
    wire.writeExtras(message, part.extras);
    return { message, attachments: [] };
  }
  wire.writeExtras(message, part.extras);
  const texts = textsOf(pieces);
  const attachments = pieces.filter(({ type }) => type !== "text");
  if (texts.length === 0 && attachments.length > 0) texts.push("See the attachment that follows.");
  message["content"] = (result.isError ? "Error: " : "") + texts.join("\n");
  if (attachments.length > 0) {
    attachments.unshift({ type: "text", text: `Attachment of the result of tool call ${id}:` });
  }
  return { message, attachments };
}

/** The texts among parts of content. */
export function textsOf(pieces: readonly Wire[]): string[] {
  return pieces.flatMap(({ type, text }) =>
    type === "text" && typeof text === "string" ? [text] : [],
  );
}

/** Reasoning goes back to vendors of this style only; what others sealed stays out. */
export function encodeReasoning(
  { text, seal }: Reasoning,
  wire: WireBody,
): Readonly<Record<string, string>> {
  if (seal?.dialect !== Dialect.CHAT_COMPLETIONS) {
    wire.drop("turns.reasoning");
    return {};
  }
  // A client may have made the seal up: it names one of these members or none.
  const member = reasoningMembers.find((each) => each === seal.signature);
  return { [member ?? "reasoning_content"]: text };
}

/** The most characters that vendors of this style take for a call's id. */
const callIdCharsMax = 40;

/** The same id always becomes the same other one, so that results find their call. */
function callId(id: string, { isOwn }: WireBody): string {
  if (isOwn || id.length <= callIdCharsMax) return id;
  return `call_${createHash("sha256").update(id).digest("hex").slice(0, 32)}`;
}
