/** Reads streamed replies for tests, and adds their events up. */
import { create } from "@bufbuild/protobuf";
import { expect } from "vitest";
import type { Part } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  type Reply,
  ReplySchema,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { ResponsesStreamDecoder } from "../../../../src/dialect/responses/decode-stream.ts";

/** Accumulates events. */
export function assembled(events: readonly GenerateEvent[]): Reply {
  const reply = create(ReplySchema);
  for (const { kind } of events) {
    if (kind.case === "start") {
      const { id, model, created } = kind.value;
      Object.assign(reply, { id, model, created });
    } else if (kind.case === "partStart" && kind.value.part !== undefined) {
      expect(kind.value.index).toBe(reply.parts.length);
      reply.parts.push(structuredClone(kind.value.part));
    } else if (kind.case === "partDelta") {
      addTo(reply.parts[kind.value.index], kind.value.delta);
    } else if (kind.case === "end") {
      const { stopReason, usage, serviceTier } = kind.value;
      Object.assign(reply, { stopReason, usage, serviceTier });
    }
  }
  return reply;
}

type Delta = Extract<GenerateEvent["kind"], { case: "partDelta" }>["value"]["delta"];

function addTo(part: Part | undefined, delta: Delta): void {
  const kind = part?.kind;
  if (kind?.case === "text" || kind?.case === "refusal") {
    if (delta.case === "text") kind.value.text += delta.value;
    if (delta.case === "citation" && kind.case === "text") kind.value.citations.push(delta.value);
  } else if (kind?.case === "toolCall" && delta.case === "input") {
    kind.value.input += delta.value;
  } else if (kind?.case === "reasoning") {
    const { summaries } = kind.value;
    if (delta.case === "text") kind.value.text += delta.value;
    if (delta.case === "seal") kind.value.seal = delta.value;
    if (delta.case === "summaryStart") summaries.push("");
    if (delta.case === "summary") summaries.push((summaries.pop() ?? "") + delta.value);
  }
}

/** The events of a stream that arrives in pieces. Default: in one. */
export function decodeStream(stream: string, pieceBytes = stream.length): GenerateEvent[] {
  const decoder = new ResponsesStreamDecoder();
  const bytes = Buffer.from(stream);
  const events: GenerateEvent[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    events.push(...decoder.push([Buffer.from(bytes.subarray(at, at + pieceBytes))]));
  }
  return [...events, ...decoder.end()];
}
