/** Events of a streamed reply, built by hand: going through the schema for each of them would cost more than
 * reading it does. */
import type {
  Citation,
  Part,
  ReasoningSeal,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";

type Delta = Extract<GenerateEvent["kind"], { case: "partDelta" }>["value"]["delta"];

function event(kind: GenerateEvent["kind"]): GenerateEvent {
  return { $typeName: "uas.inference.v1.GenerateEvent", kind };
}

/** A part begins. */
export function partStart(index: number, part: Part): GenerateEvent {
  const value = { $typeName: "uas.inference.v1.PartStart" as const, index, part };
  return event({ case: "partStart", value });
}

/** A part is complete. */
export function partEnd(index: number): GenerateEvent {
  return event({ case: "partEnd", value: { $typeName: "uas.inference.v1.PartEnd", index } });
}

function partDelta(index: number, delta: Delta): GenerateEvent {
  const value = { $typeName: "uas.inference.v1.PartDelta" as const, index, delta };
  return event({ case: "partDelta", value });
}

/** More of a text or of reasoning. */
export function textDelta(index: number, value: string): GenerateEvent {
  return partDelta(index, { case: "text", value });
}

/** More of a call's input. */
export function inputDelta(index: number, value: string): GenerateEvent {
  return partDelta(index, { case: "input", value });
}

/** A text refers to a source. */
export function citationDelta(index: number, value: Citation): GenerateEvent {
  return partDelta(index, { case: "citation", value });
}

/** The seal of reasoning. */
export function sealDelta(index: number, value: ReasoningSeal): GenerateEvent {
  return partDelta(index, { case: "seal", value });
}
