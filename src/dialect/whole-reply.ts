/**
 * Replies that come whole, also from vendors that send events although no stream was requested.
 * Pure.
 */
import type { Reply } from "../../gen/uas/inference/v1/generate_pb.ts";
import type { VendorCodec } from "./codec.ts";
import { replyOf } from "./reply-events.ts";

/**
 * The beginnings of an event stream: a field or a comment, behind a byte order mark and empty
 * lines.
 */
const firstLine = /^(?:\ufeff)?\s*(?:data:|event:|id:|retry:|:)/;

/** Bytes in which the first line of a stream begins. */
const beginningBytes = 1_024;

/** Whether a complete body is a stream of events. */
export function isEventStream(body: Buffer): boolean {
  return firstLine.test(body.toString("utf8", 0, beginningBytes));
}

/**
 * Decodes a complete reply: a JSON object, or all events of a stream. @throws UnreadableReplyError
 */
export function decodeWhole(codec: VendorCodec, body: Buffer): Reply {
  if (!isEventStream(body)) return codec.decodeReply(body);
  const decoder = codec.decodeStream();
  return replyOf([...decoder.push([body]), ...decoder.end()]);
}
