/** A vendor's whole response. */
import { create } from "@bufbuild/protobuf";
import { type Reply, ReplySchema } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { GatewayError } from "../../core/errors.ts";
import { UnreadableReplyError, type VendorError } from "../codec.ts";
import {
  countAt,
  type JsonRecord,
  parseRecord,
  parseReply,
  recordAt,
  recordsAt,
  textAt,
} from "../json/value.ts";
import { failureOf, saidBy, stopReasonOf } from "./finish-reason.ts";
import { decodeOutputItem } from "./output.ts";
import { readUsage } from "./usage.ts";

/**
 * See {@link VendorCodec.decodeReply}.
 *
 * @throws GatewayError what the vendor tells of a response that failed
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
  const parts = recordsAt(response, "output").flatMap(decodeOutputItem);
  const usage = readUsage(response);
  return create(ReplySchema, {
    id: textAt(response, "id"),
    model: textAt(response, "model"),
    created: createdAt(response),
    parts,
    stopReason: stopReasonOf(response, saidBy(parts)),
    serviceTier: textAt(response, "service_tier"),
    ...(usage && { usage }),
  });
}

/** When a response was begun, in seconds since 1970; 0: not told. */
export function createdAt(response: JsonRecord): bigint {
  const told = response["created_at"];
  return typeof told === "number" && Number.isFinite(told) ? BigInt(Math.trunc(told)) : 0n;
}

/** See {@link VendorCodec.decodeError}. */
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
