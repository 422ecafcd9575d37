/** The client's side of messages: whole replies. */
import {
  type Citation,
  type Part,
  type TextPart,
  type ToolCall,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Reply } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ReplyOptions } from "../codec.ts";
import { sourcesText, writeCitation } from "./citation.ts";
import { toolInput } from "./encode-content.ts";
import { type JsonBranch, JsonText, type JsonTree, writeJson } from "../../wire/json/json-tree.ts";
import { parseRecord } from "../../wire/json/value.ts";
import { clientOpaque, messageId, writeServedTier, legalToolId } from "./wire.ts";
import { clientData, clientSignature, isRedacted, shownThinking } from "./reasoning.ts";
import { type ReplyContents, writeEnding } from "./finish-reason.ts";
import { estimatedUsage, writeUsage } from "./usage.ts";

/** Implements {@link CallerCodec.encodeReply}. */
export function encodeMessagesReply(reply: Reply, options: ReplyOptions): Buffer {
  const { usage } = reply;
  const tier = writeServedTier(reply.serviceTier);
  const body = {
    id: messageId(reply.id, options),
    type: "message",
    role: "assistant",
    model: options.model,
    content: reply.parts.flatMap((part) => encodePart(part, options) ?? []),
    ...writeEnding(reply, said(reply)),
    usage: {
      ...(usage === undefined ? estimatedUsage(options.inputTokens) : writeUsage(usage)),
      ...(tier !== undefined && { service_tier: tier }),
    },
  };
  return Buffer.from(writeJson(body));
}

function said({ parts }: Reply): ReplyContents {
  const refusals = parts.flatMap(({ kind }) => (kind.case === "refusal" ? [kind.value.text] : []));
  return {
    hasToolCall: parts.some(({ kind }) => kind.case === "toolCall"),
    refusal: refusals.length === 0 ? undefined : refusals.join("\n"),
  };
}

/** The block for a part; `undefined` if there is nothing to be said, or no way to say it. */
function encodePart({ kind }: Part, options: ReplyOptions): JsonTree | undefined {
  switch (kind.case) {
    case "text":
      return encodeText(kind.value, options);
    case "refusal":
      return kind.value.text === "" ? undefined : { type: "text", text: kind.value.text };
    case "reasoning": {
      const reasoning = kind.value;
      if (isRedacted(reasoning)) return { type: "redacted_thinking", data: clientData(reasoning) };
      const thinking = shownThinking(reasoning);
      if (thinking === "" && reasoning.seal === undefined) return undefined;
      return { type: "thinking", thinking, signature: clientSignature(reasoning) };
    }
    case "toolCall": {
      const { id, name } = kind.value;
      const input = new JsonText(shownInput(kind.value));
      return { type: "tool_use", id: legalToolId(id), name, input };
    }
    case "opaque": {
      const json = clientOpaque(kind.value, options);
      return json === undefined ? undefined : new JsonText(json);
    }
    case "media":
    case "toolResult":
    case undefined:
    default:
      options.onDropped(kind.case ?? "part");
      return undefined;
  }
}

/**
 * A call's input as an object. What was cut short is shown under the name that streams have for it:
 * an empty object would look complete.
 */
function shownInput(call: ToolCall): string {
  const { type, input } = call;
  const isCut = type !== ToolType.CUSTOM && input !== "" && parseRecord(input) === undefined;
  return isCut ? JSON.stringify({ partial_json: input }) : toolInput(call);
}

/** The vendor omits citations if there are none, because an SDK refuses null. */
function encodeText(
  { text: own, citations }: TextPart,
  options: ReplyOptions,
): JsonBranch | undefined {
  const text = own || sourcesText(citations);
  if (text === "") {
    if (citations.length > 0) options.onDropped("citations");
    return undefined;
  }
  const written = citations.flatMap((citation) => encodeCitation(citation, text, options));
  return { type: "text", text, ...(written.length > 0 && { citations: written }) };
}

function encodeCitation(citation: Citation, text: string, { onDropped }: ReplyOptions): JsonText[] {
  const json = writeCitation(citation, text);
  if (json === undefined) onDropped("citations");
  return json === undefined ? [] : [new JsonText(json)];
}
