/** Decodes a vendor's whole reply or error. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Part,
  PartSchema,
  type Reasoning,
  type ToolCall,
  ToolCallSchema,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type Reply, ReplySchema, StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type VendorError } from "../codec.ts";
import { JsonSource } from "../json/source.ts";
import {
  UnreadableReplyError,
  countAt,
  parseReply,
  recordAt,
  recordsAt,
  textAt,
  type JsonRecord,
} from "../json/value.ts";
import { decodeCitation } from "./citation.ts";
import { decodeFinishReason, isFailureReason } from "./finish-reason.ts";
import { readInput } from "./decode-content.ts";
import { callsIn, generatedCallId, readText } from "./wire.ts";
import { readReasoning } from "./reasoning.ts";
import { decodeUsage } from "./usage.ts";
import { readVendorError } from "./errors.ts";
import { opaqueReasoning, opaqueText } from "./opaque-members.ts";

/** Implements {@link VendorCodec.decodeReply}. */
export function decodeChatReply(body: Buffer): Reply {
  const wire = parseReply(body);
  const failure = readVendorError(wire);
  if (failure !== undefined)
    throw new UnreadableReplyError(`the vendor failed: ${failure.message}`);
  const [choice] = recordsAt(wire, "choices");
  const message = choice && recordAt(choice, "message");
  if (choice === undefined || message === undefined) {
    throw new UnreadableReplyError("the vendor's reply has no choice with a message");
  }
  const finishReason = textAt(choice, "finish_reason");
  if (isFailureReason(finishReason))
    throw new UnreadableReplyError(`the reply ended in ${finishReason}`);
  const id = textAt(wire, "id");
  const parts = decodeMessage(message, id, new JsonSource(body, wire));
  const usage = decodeUsage(recordAt(wire, "usage"));
  return create(ReplySchema, {
    id,
    model: textAt(wire, "model"),
    parts,
    ...decodeStop(choice, parts),
    ...(usage && { usage }),
    serviceTier: textAt(wire, "service_tier"),
    created: BigInt(countAt(wire, "created") ?? 0),
  });
}

function decodeMessage(message: JsonRecord, replyId: string, source: JsonSource): Part[] {
  const parts: Part[] = [];
  const reasoning = readReasoning(message);
  if (reasoning !== undefined) {
    const { text, member } = reasoning;
    const seal = { dialect: Dialect.CHAT_COMPLETIONS, signature: member };
    parts.push(create(PartSchema, { kind: { case: "reasoning", value: { text, seal } } }));
  }
  const text = readText(message);
  if (text !== "") {
    const citations = recordsAt(message, "annotations").map((each) => decodeCitation(each, source));
    parts.push(create(PartSchema, { kind: { case: "text", value: { text, citations } } }));
  }
  const refusal = textAt(message, "refusal");
  if (refusal !== "") {
    parts.push(create(PartSchema, { kind: { case: "refusal", value: { text: refusal } } }));
  }
  const own = opaqueText(message, source);
  if (own !== "") parts.push(reasoningPart(opaqueReasoning("", own)));
  const ids = new Set<string>();
  for (const [i, wire] of callsIn(message).entries()) {
    const call = decodeCall(wire, generatedCallId(replyId, i), source);
    // Clients cannot use a call without a name.
    if (call.name === "") continue;
    if (ids.has(call.id)) call.id = `${call.id}_${i}`;
    ids.add(call.id);
    const opaque = opaqueText(wire, source);
    if (opaque !== "") parts.push(reasoningPart(opaqueReasoning(call.id, opaque)));
    parts.push(callPart(call));
  }
  return parts;
}

function reasoningPart(value: Reasoning): Part {
  return create(PartSchema, { kind: { case: "reasoning", value } });
}

function callPart(value: ToolCall): Part {
  return create(PartSchema, { kind: { case: "toolCall", value } });
}

function decodeCall(call: JsonRecord, madeId: string, source: JsonSource): ToolCall {
  const custom = recordAt(call, "custom");
  const called = custom ?? recordAt(call, "function") ?? {};
  const input = readInput(called, custom ? "input" : "arguments", source);
  return create(ToolCallSchema, {
    id: textAt(call, "id") || madeId,
    name: textAt(called, "name"),
    type: custom ? ToolType.CUSTOM : ToolType.FUNCTION,
    input: custom === undefined && input.trim() === "null" ? "{}" : input,
  });
}

/** Some compatible vendors report the matching stop text in `stop_reason`. */
function decodeStop(choice: JsonRecord, parts: readonly Part[]) {
  const contents = {
    hasCalls: parts.some(({ kind }) => kind.case === "toolCall"),
    hasRefusal: parts.some(({ kind }) => kind.case === "refusal"),
  };
  const stopReason = decodeFinishReason(textAt(choice, "finish_reason"), contents);
  const stopSequence = textAt(choice, "stop_reason");
  const isStopped = stopSequence !== "" && stopReason === StopReason.END;
  return isStopped ? { stopReason: StopReason.STOP_SEQUENCE, stopSequence } : { stopReason };
}

/** Implements {@link VendorCodec.decodeError}. */
export function decodeChatError(body: Buffer): VendorError | undefined {
  try {
    return readVendorError(parseReply(body));
  } catch (error) {
    if (error instanceof UnreadableReplyError) return undefined;
    throw error;
  }
}
