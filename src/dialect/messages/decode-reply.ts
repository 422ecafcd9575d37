/** The vendor's side of messages: whole replies and refusals. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type Part, PartSchema, ToolType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type Reply, ReplySchema } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type VendorError } from "../codec.ts";
import { JsonSource } from "../../wire/json/source.ts";
import {
  UnreadableReplyError,
  parseRecord,
  parseReply,
  recordAt,
  recordsAt,
  textAt,
  type JsonRecord,
} from "../../wire/json/value.ts";
import { missingCall, reconciledEnd, SeenContents } from "../reply-end.ts";
import { readCitation } from "./citation.ts";
import { readServedTier } from "./wire.ts";
import { readEnding } from "./finish-reason.ts";
import { readUsage } from "./usage.ts";

/** Implements {@link VendorCodec.decodeReply}. */
export function decodeMessagesReply(body: Buffer): Reply {
  const record = parseReply(body);
  if (!Array.isArray(record["content"])) {
    throw new UnreadableReplyError("the vendor's reply has no content");
  }
  const source = new JsonSource(body, record);
  const wire = recordAt(record, "usage") ?? {};
  const usage = readUsage(wire);
  const parts = recordsAt(record, "content").map((block) => readBlock(block, source));
  const ending = readEnding(record);
  const stopReason = reconciledEnd(ending.stopReason, new SeenContents(parts));
  if (stopReason === undefined) throw new UnreadableReplyError(missingCall);
  return create(ReplySchema, {
    id: textAt(record, "id"),
    model: textAt(record, "model"),
    parts,
    ...ending,
    stopReason,
    ...(usage && { usage }),
    serviceTier: readServedTier(textAt(wire, "service_tier")),
  });
}

type PartKind = NonNullable<MessageInitShape<typeof PartSchema>["kind"]>;

/** A content block of a vendor, whole. @param source the text that it is in */
export function readBlock(block: JsonRecord, source: JsonSource): Part {
  return create(PartSchema, { kind: readKind(block, source) });
}

function readKind(block: JsonRecord, source: JsonSource): PartKind {
  const type = textAt(block, "type");
  switch (type) {
    case "text": {
      const citations = recordsAt(block, "citations").map((each) =>
        readCitation(each, source.textOf(each)),
      );
      return { case: "text", value: { text: textAt(block, "text"), citations } };
    }
    case "thinking": {
      const signature = textAt(block, "signature");
      const seal = { dialect: Dialect.MESSAGES, signature };
      const text = textAt(block, "thinking");
      return { case: "reasoning", value: { text, ...(signature !== "" && { seal }) } };
    }
    case "redacted_thinking": {
      const seal = { dialect: Dialect.MESSAGES, data: textAt(block, "data") };
      return { case: "reasoning", value: { seal } };
    }
    case "tool_use": {
      const input = readInput(block, source);
      const id = textAt(block, "id");
      const name = textAt(block, "name");
      return { case: "toolCall", value: { id, name, type: ToolType.FUNCTION, input } };
    }
    default: {
      const json = source.textOf(block);
      return { case: "opaque", value: { dialect: Dialect.MESSAGES, type, json } };
    }
  }
}

/** The input of a `tool_use` block, as the vendor wrote it. */
export function readInput(block: JsonRecord, source: JsonSource): string {
  return block["input"] == null ? "{}" : source.memberText(block, "input");
}

/** Implements {@link VendorCodec.decodeError}. */
export function decodeMessagesError(body: Buffer): VendorError | undefined {
  const error = recordAt(parseRecord(body.toString("utf8")) ?? {}, "error");
  const message = error && textAt(error, "message");
  if (error === undefined || !message) return undefined;
  const details = recordAt(error, "details") ?? {};
  return { message, code: textAt(details, "error_code") || textAt(error, "type") };
}
