/** Makes events of the contract as `create` would, without going through the schema for each chunk. */
import type { Part } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";

/** An event of any kind. */
export function generateEvent(kind: GenerateEvent["kind"]): GenerateEvent {
  return { $typeName: "uas.inference.v1.GenerateEvent", kind };
}

/** A part begins. */
export function partStart(index: number, kind: Part["kind"]): GenerateEvent {
  const part: Part = { $typeName: "uas.inference.v1.Part", kind, extras: [] };
  const value = { $typeName: "uas.inference.v1.PartStart" as const, index, part };
  return generateEvent({ case: "partStart", value });
}

/** A part goes on. */
export function partDelta(index: number, delta: PartDelta["delta"]): GenerateEvent {
  const value = { $typeName: "uas.inference.v1.PartDelta" as const, index, delta };
  return generateEvent({ case: "partDelta", value });
}

/** A part is complete. */
export function partEnd(index: number): GenerateEvent {
  const value = { $typeName: "uas.inference.v1.PartEnd" as const, index };
  return generateEvent({ case: "partEnd", value });
}
