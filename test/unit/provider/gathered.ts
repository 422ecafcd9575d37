/** A streamed reply, gathered from its events. */
import { create } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  type Reply,
  ReplySchema,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { StreamDecoder } from "../../../src/dialect/codec.ts";
import type { VendorBody } from "../../../src/provider/reply.ts";

/** Reads a stream to its end. @throws if it fails, or has none */
export async function gathered(decoder: StreamDecoder, body: VendorBody): Promise<Reply> {
  const events: GenerateEvent[] = [];
  while (await body.ready()) events.push(...decoder.push(body.take()));
  events.push(...decoder.end());
  const reply = create(ReplySchema);
  for (const event of events) add(reply, event);
  if (events.at(-1)?.kind.case !== "end") throw new Error("the stream has no end");
  return reply;
}

function add(reply: Reply, { kind }: GenerateEvent): void {
  if (kind.case === "error") throw new Error(kind.value.message);
  if (kind.case === "start") reply.id = kind.value.id;
  if (kind.case === "partStart" && kind.value.part) reply.parts.push(kind.value.part);
  if (kind.case === "end") {
    reply.stopReason = kind.value.stopReason;
    if (kind.value.usage) reply.usage = kind.value.usage;
  }
  if (kind.case !== "partDelta") return;
  const part = reply.parts[kind.value.index]?.kind;
  const { delta } = kind.value;
  if (part?.case === "text" && delta.case === "text") part.value.text += delta.value;
  if (part?.case === "reasoning" && delta.case === "text") part.value.text += delta.value;
  if (part?.case === "reasoning" && delta.case === "seal") part.value.seal = delta.value;
  if (part?.case === "toolCall" && delta.case === "input") part.value.input += delta.value;
}
