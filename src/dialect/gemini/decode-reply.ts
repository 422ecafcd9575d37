import type { GenerateEvent, Reply } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { JsonSource, listElements, memberOf, changeMembers } from "../../wire/json/source.ts";
import { UnreadableReplyError, parseReply } from "../../wire/json/value.ts";
import { replyOf } from "../reply-events.ts";
import { ReplyReader } from "./decode-content.ts";

/** Implements {@link VendorCodec.decodeReply}. */
export function decodeGeminiReply(body: Buffer): Reply {
  const reader = new ReplyReader();
  const events: GenerateEvent[] = [];
  const record = parseReply(body);
  reader.read(record, new JsonSource(body, record), events);
  reader.end(events);
  if (!reader.isOver) throw new UnreadableReplyError("the reply has no candidate that finished");
  return replyOf(events);
}

/** Implements {@link VendorCodec.splitChoices}. Each part contains the usage of all candidates. */
export function splitGeminiCandidates(body: Buffer): readonly Buffer[] {
  const { candidates } = parseReply(body);
  if (!Array.isArray(candidates) || candidates.length <= 1) return [body];
  const text = body.toString("utf8");
  return listElements(memberOf(text, "candidates")).map((each) =>
    Buffer.from(changeMembers(text, { candidates: `[${each}]` })),
  );
}
