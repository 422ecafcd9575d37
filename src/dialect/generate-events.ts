/**
 * Builds the events of a streamed reply as plain objects: `create` walks the schema, which costs a
 * microsecond an event.
 */
import type { Citation, Part, ReasoningSeal } from "../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, PartDelta } from "../../gen/uas/inference/v1/generate_pb.ts";

/** Wraps an event of any kind. */
export function generateEvent(kind: GenerateEvent["kind"]): GenerateEvent {
  return { $typeName: "uas.inference.v1.GenerateEvent", kind };
}

/** A part begins. `part` holds what is already known of it. */
export function partStart(index: number, part: Part): GenerateEvent {
  const value = { $typeName: "uas.inference.v1.PartStart" as const, index, part };
  return generateEvent({ case: "partStart", value });
}

/** A part is complete. */
export function partEnd(index: number): GenerateEvent {
  const value = { $typeName: "uas.inference.v1.PartEnd" as const, index };
  return generateEvent({ case: "partEnd", value });
}

/** An addition to an open part. */
export function partDelta(index: number, delta: PartDelta["delta"]): GenerateEvent {
  const value = { $typeName: "uas.inference.v1.PartDelta" as const, index, delta };
  return generateEvent({ case: "partDelta", value });
}

/** More text of a text, refusal or reasoning part. */
export function textDelta(index: number, value: string): GenerateEvent {
  return partDelta(index, { case: "text", value });
}

/** More of a tool call's input. */
export function inputDelta(index: number, value: string): GenerateEvent {
  return partDelta(index, { case: "input", value });
}

/** A citation of an open text part. */
export function citationDelta(index: number, value: Citation): GenerateEvent {
  return partDelta(index, { case: "citation", value });
}

/** The seal of an open reasoning part. */
export function sealDelta(index: number, value: ReasoningSeal): GenerateEvent {
  return partDelta(index, { case: "seal", value });
}
