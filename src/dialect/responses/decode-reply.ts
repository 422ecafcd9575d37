/** A vendor's whole response. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Extra,
  ExtraSchema,
  type Part,
  PartSchema,
  type Reasoning,
  ReasoningSchema,
  type ReasoningSeal,
  ReasoningSealSchema,
  type ToolCall,
  ToolCallSchema,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type Reply, ReplySchema } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { GatewayError } from "../../core/errors.ts";
import { type VendorError } from "../codec.ts";
import { JsonSource } from "../../wire/json/source.ts";
import {
  UnreadableReplyError,
  countAt,
  parseRecord,
  parseReply,
  recordAt,
  recordsAt,
  textAt,
  type JsonRecord,
} from "../../wire/json/value.ts";
import { decodeCitation } from "./citation.ts";
import { failureOf } from "./errors.ts";
import { contentsOf, stopReasonOf } from "./finish-reason.ts";
import { readUsage } from "./usage.ts";

/**
 * Implements {@link VendorCodec.decodeReply}.
 *
 * @throws GatewayError the vendor's error if the response failed
 */
export function decodeResponsesReply(body: Buffer): Reply {
  const response = parseReply(body);
  if (textAt(response, "status") === "failed") {
    const { code, message } = failureOf(response);
    throw new GatewayError(code, message);
  }
  if (!Array.isArray(response["output"])) {
    throw new UnreadableReplyError("the vendor's response has no output");
  }
  const source = new JsonSource(body, response);
  const parts = recordsAt(response, "output").flatMap((item) => decodeOutputItem(item, source));
  const usage = readUsage(response["usage"], (name) => response[name]);
  return create(ReplySchema, {
    id: textAt(response, "id"),
    model: textAt(response, "model"),
    created: createdAt(response),
    parts,
    stopReason: stopReasonOf(response, contentsOf(parts)),
    serviceTier: textAt(response, "service_tier"),
    ...(usage && { usage }),
  });
}

/** Returns the creation time of a response in seconds since 1970; 0 if not stated. */
export function createdAt(response: JsonRecord): bigint {
  const seconds = response["created_at"];
  return typeof seconds === "number" && Number.isFinite(seconds) ? BigInt(Math.trunc(seconds)) : 0n;
}

/** Implements {@link VendorCodec.decodeError}. */
export function decodeResponsesError(body: Buffer): VendorError | undefined {
  const record = parseRecord(body.toString("utf8"));
  if (record === undefined) return undefined;
  const error = recordAt(record, "error");
  if (error === undefined) {
    const message = textAt(record, "error") || textAt(record, "message");
    return message === "" ? undefined : { message, code: textAt(record, "code") };
  }
  const code = textAt(error, "code") || textAt(error, "type");
  const number = countAt(error, "code");
  return { message: textAt(error, "message"), code: code || (number?.toString() ?? "") };
}

/**
 * Reads an output item. A message has one part for each of its content parts.
 *
 * @param source the text that the item is in
 */
export function decodeOutputItem(item: JsonRecord, source: JsonSource): Part[] {
  switch (textAt(item, "type")) {
    case "message":
      return recordsAt(item, "content").map((content) =>
        decodeOutputContent(content, item, source),
      );
    case "function_call":
    case "custom_tool_call":
      return [create(PartSchema, { kind: { case: "toolCall", value: decodeCall(item) } })];
    case "reasoning":
      return [create(PartSchema, { kind: { case: "reasoning", value: decodeReasoning(item) } })];
    default:
      return [opaquePart(item, source)];
  }
}

/** Reads a content part of the message `item`. @param source the text that the content is in */
export function decodeOutputContent(
  content: JsonRecord,
  item: JsonRecord,
  source: JsonSource,
): Part {
  const extras = phaseOf(item);
  switch (textAt(content, "type")) {
    case "output_text": {
      const citations = recordsAt(content, "annotations").map((each) =>
        decodeCitation(source.textOf(each)),
      );
      const value = { text: textAt(content, "text"), citations };
      return create(PartSchema, { kind: { case: "text", value }, extras });
    }
    case "refusal": {
      const value = { text: textAt(content, "refusal") };
      return create(PartSchema, { kind: { case: "refusal", value }, extras });
    }
    default:
      return opaquePart(content, source);
  }
}

/** Returns the phase of a message, which clients must send back. */
function phaseOf(item: JsonRecord): Extra[] {
  const phase = textAt(item, "phase");
  return phase === "" ? [] : [create(ExtraSchema, { name: "phase", json: JSON.stringify(phase) })];
}

/** Reads a call of one of the caller's tools. */
export function decodeCall(item: JsonRecord): ToolCall {
  const isCustom = textAt(item, "type") === "custom_tool_call";
  return create(ToolCallSchema, {
    id: textAt(item, "call_id") || textAt(item, "id"),
    name: textAt(item, "name"),
    type: isCustom ? ToolType.CUSTOM : ToolType.FUNCTION,
    input: textAt(item, isCustom ? "input" : "arguments"),
    namespace: textAt(item, "namespace"),
    itemId: textAt(item, "id"),
  });
}

/** Reads a reasoning item. */
export function decodeReasoning(item: JsonRecord): Reasoning {
  const seal = sealOf(item);
  return create(ReasoningSchema, {
    text: recordsAt(item, "content")
      .map((part) => textAt(part, "text"))
      .join(""),
    summaries: recordsAt(item, "summary").map((part) => textAt(part, "text")),
    itemId: textAt(item, "id"),
    ...(seal && { seal }),
  });
}

/** The seal of a reasoning item; undefined if there is none. */
export function sealOf(item: JsonRecord): ReasoningSeal | undefined {
  const data = textAt(item, "encrypted_content");
  return data === ""
    ? undefined
    : create(ReasoningSealSchema, { dialect: Dialect.RESPONSES, data });
}

/** Returns a part specific to this style, unchanged. */
function opaquePart(item: JsonRecord, source: JsonSource): Part {
  const value = {
    dialect: Dialect.RESPONSES,
    type: textAt(item, "type"),
    json: source.textOf(item),
  };
  return create(PartSchema, { kind: { case: "opaque", value } });
}
