/** Converts between whole replies and the events of streamed ones. Pure. */
import { create } from "@bufbuild/protobuf";
import {
  type Part,
  PartSchema,
  type Reasoning,
  type ReasoningSeal,
} from "../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  GenerateEventSchema,
  type PartDelta,
  PartDeltaSchema,
  type Reply,
  ReplySchema,
  StopReason,
} from "../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { UnreadableReplyError } from "../wire/json/value.ts";

/** Converts a reply to the events of an equivalent stream. */
export function replyEvents(reply: Reply): GenerateEvent[] {
  const { id, model, created, usage } = reply;
  return [
    event({ case: "start", value: { id, model, created } }),
    ...reply.parts.flatMap(partEvents),
    event({
      case: "end",
      value: {
        stopReason: reply.stopReason,
        stopSequence: reply.stopSequence,
        stopDetail: reply.stopDetail,
        serviceTier: reply.serviceTier,
        ...(usage && { usage }),
      },
    }),
  ];
}

/**
 * Collects the events of a complete stream as a reply.
 *
 * @throws UnreadableReplyError if the events contain a failure, or no end
 */
export function replyOf(events: readonly GenerateEvent[]): Reply {
  const reply = create(ReplySchema);
  const parts = new Map<number, Part>();
  let isEnded = false;
  for (const { kind } of events) {
    if (kind.case === "start") {
      const { id, model, created } = kind.value;
      Object.assign(reply, { id, model, created });
    } else if (kind.case === "partStart" && kind.value.part !== undefined) {
      parts.set(kind.value.index, kind.value.part);
      reply.parts.push(kind.value.part);
    } else if (kind.case === "partDelta") {
      addDelta(parts.get(kind.value.index), kind.value.delta);
    } else if (kind.case === "end") {
      const { stopReason, stopSequence, stopDetail, serviceTier, usage } = kind.value;
      const end = { stopReason, stopSequence, stopDetail, serviceTier };
      Object.assign(reply, end, usage && { usage });
      isEnded = true;
    } else if (kind.case === "error") throw new UnreadableReplyError(kind.value.message);
  }
  if (!isEnded) throw new UnreadableReplyError("the reply has no end");
  return reply;
}

function addDelta(part: Part | undefined, delta: PartDelta["delta"]): void {
  const kind = part?.kind;
  if (kind?.case === "text" || kind?.case === "refusal") {
    if (delta.case === "text") kind.value.text += delta.value;
    if (kind.case === "text" && delta.case === "citation") kind.value.citations.push(delta.value);
  } else if (kind?.case === "toolCall") {
    if (delta.case === "input") kind.value.input += delta.value;
  } else if (kind?.case === "reasoning") addReasoning(kind.value, delta);
}

function addReasoning(reasoning: Reasoning, delta: PartDelta["delta"]): void {
  const { summaries } = reasoning;
  if (delta.case === "text") reasoning.text += delta.value;
  else if (delta.case === "seal") reasoning.seal = delta.value;
  else if (delta.case === "summaryStart") summaries.push("");
  else if (delta.case === "summary") summaries.push((summaries.pop() ?? "") + delta.value);
}

/** The end event of a reply that reached its token limit. */
export function lengthEnd(usage: Usage | undefined): GenerateEvent {
  const value = { stopReason: StopReason.LENGTH, ...(usage && { usage }) };
  return event({ case: "end", value });
}

/** Bytes of generated text in a reply, the basis of an estimate if the vendor reports no usage. */
export function replyTextBytes(reply: Reply): number {
  let bytes = 0;
  for (const { kind } of reply.parts) {
    if (kind.case === "text" || kind.case === "refusal")
      bytes += Buffer.byteLength(kind.value.text);
    else if (kind.case === "toolCall") bytes += Buffer.byteLength(kind.value.input);
    else if (kind.case === "reasoning") {
      bytes += Buffer.byteLength(kind.value.text + kind.value.summaries.join(""));
    }
  }
  return bytes;
}

type EventInit = NonNullable<Parameters<typeof create<typeof GenerateEventSchema>>[1]>["kind"];

function event(kind: EventInit): GenerateEvent {
  return create(GenerateEventSchema, kind === undefined ? {} : { kind });
}

function partEvents(part: Part, index: number): GenerateEvent[] {
  return [
    event({ case: "partStart", value: { index, part: emptied(part) } }),
    ...deltas(part).map((delta) =>
      event({ case: "partDelta", value: create(PartDeltaSchema, { index, delta }) }),
    ),
    event({ case: "partEnd", value: { index } }),
  ];
}

/** A part at its beginning, without the content of deltas. */
function emptied(part: Part): Part {
  const { kind } = part;
  if (kind.case === "text") return create(PartSchema, { kind: { case: "text", value: {} } });
  if (kind.case === "refusal") return create(PartSchema, { kind: { case: "refusal", value: {} } });
  if (kind.case === "toolCall") {
    return create(PartSchema, { kind: { case: "toolCall", value: { ...kind.value, input: "" } } });
  }
  if (kind.case !== "reasoning") return part;
  const { itemId } = kind.value;
  const seal = wholeSeal(kind.value);
  return create(PartSchema, {
    kind: { case: "reasoning", value: { itemId, ...(seal && { seal }) } },
  });
}

type Delta = NonNullable<Parameters<typeof create<typeof PartDeltaSchema>>[1]>["delta"] & object;

function deltas({ kind }: Part): Delta[] {
  if (kind.case === "refusal") return texts(kind.value.text);
  if (kind.case === "reasoning") return reasoningDeltas(kind.value);
  if (kind.case === "text") {
    const citations = kind.value.citations.map((value): Delta => ({ case: "citation", value }));
    return [...texts(kind.value.text), ...citations];
  }
  if (kind.case !== "toolCall" || kind.value.input === "") return [];
  return [{ case: "input", value: kind.value.input }];
}

function reasoningDeltas(reasoning: Reasoning): Delta[] {
  const { text, summaries, seal } = reasoning;
  const late: Delta[] =
    seal === undefined || wholeSeal(reasoning) ? [] : [{ case: "seal", value: seal }];
  const summarized = summaries.flatMap((summary): Delta[] => [
    { case: "summaryStart", value: true },
    { case: "summary", value: summary },
  ]);
  return [...summarized, ...texts(text), ...late];
}

/** A seal in place of the reasoning is sent at once; a signature follows at the end. */
function wholeSeal({ seal }: Reasoning): ReasoningSeal | undefined {
  return seal?.data ? seal : undefined;
}

function texts(text: string): Delta[] {
  return text === "" ? [] : [{ case: "text", value: text }];
}
