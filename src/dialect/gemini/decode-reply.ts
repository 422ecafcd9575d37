import { create } from "@bufbuild/protobuf";
import type { Part } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  type PartDelta,
  type Reply,
  ReplySchema,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { JsonSource, listElements, memberOf, changeMembers } from "../json/source.ts";
import { UnreadableReplyError, parseReply } from "../json/value.ts";
import { ReplyReader } from "./decode-content.ts";

/** Implements {@link VendorCodec.decodeReply}. */
export function decodeGeminiReply(body: Buffer): Reply {
  const reader = new ReplyReader();
  const events: GenerateEvent[] = [];
  const record = parseReply(body);
  reader.read(record, new JsonSource(body, record), events);
  reader.end(events);
  const reply = create(ReplySchema);
  for (const each of events) apply(reply, each);
  if (!reader.isOver) throw new UnreadableReplyError("the reply has no candidate that finished");
  return reply;
}

/** Implements {@link VendorCodec.splitChoices}. The usage of all candidates stands in each part. */
export function splitGeminiCandidates(body: Buffer): readonly Buffer[] {
  const { candidates } = parseReply(body);
  if (!Array.isArray(candidates) || candidates.length <= 1) return [body];
  const text = body.toString("utf8");
  return listElements(memberOf(text, "candidates")).map((each) =>
    Buffer.from(changeMembers(text, { candidates: `[${each}]` })),
  );
}

function apply(reply: Reply, { kind }: GenerateEvent): void {
  switch (kind.case) {
    case "start":
      reply.id = kind.value.id;
      reply.model = kind.value.model;
      break;
    case "partStart":
      if (kind.value.part !== undefined) reply.parts.push(kind.value.part);
      break;
    case "partDelta":
      add(reply.parts[kind.value.index], kind.value.delta);
      break;
    case "end": {
      const { stopReason, stopDetail, usage } = kind.value;
      Object.assign(reply, { stopReason, stopDetail, ...(usage && { usage }) });
      break;
    }
    case "error":
      throw new UnreadableReplyError(kind.value.message);
    case "partEnd":
    case undefined:
      break;
  }
}

function add(part: Part | undefined, delta: PartDelta["delta"]): void {
  const kind = part?.kind;
  if (kind?.case === "text" && delta.case === "text") kind.value.text += delta.value;
  if (kind?.case === "text" && delta.case === "citation") kind.value.citations.push(delta.value);
  if (kind?.case === "reasoning" && delta.case === "text") kind.value.text += delta.value;
  if (kind?.case === "reasoning" && delta.case === "seal") kind.value.seal = delta.value;
  if (kind?.case === "toolCall" && delta.case === "input") kind.value.input += delta.value;
}
