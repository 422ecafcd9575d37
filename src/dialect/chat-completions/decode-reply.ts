/** Decodes a vendor's whole reply or error. */
import type { GenerateEvent, Reply } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type VendorError } from "../codec.ts";
import { JsonSource } from "../../wire/json/source.ts";
import { UnreadableReplyError, parseReply, recordAt, recordsAt } from "../../wire/json/value.ts";
import { replyOf } from "../reply-events.ts";
import { ChunkReader } from "./decode-stream.ts";
import { readVendorError } from "./errors.ts";

/**
 * Implements {@link VendorCodec.decodeReply}. A whole reply is a stream of one message, and read by
 * the same rules.
 */
export function decodeChatReply(body: Buffer): Reply {
  const wire = parseReply(body);
  const failure = readVendorError(wire);
  if (failure !== undefined)
    throw new UnreadableReplyError(`the vendor failed: ${failure.message}`);
  const [choice] = recordsAt(wire, "choices");
  if (choice === undefined || recordAt(choice, "message") === undefined) {
    throw new UnreadableReplyError("the vendor's reply has no choice with a message");
  }
  const events: GenerateEvent[] = [];
  new ChunkReader().readWhole(wire, new JsonSource(body, wire), events);
  return replyOf(events);
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
