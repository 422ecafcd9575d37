/** Events of a streamed reply, made by hand: through the schema each would cost a microsecond. */
import type {
  Citation,
  Part,
  ReasoningSeal,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";

/** A part begins. */
export function partStart(index: number, part: Part): GenerateEvent {
  return event({
    case: "partStart",
    value: { $typeName: "uas.inference.v1.PartStart", index, part },
  });
}

/** A part is complete. */
export function partEnd(index: number): GenerateEvent {
  return event({ case: "partEnd", value: { $typeName: "uas.inference.v1.PartEnd", index } });
}

/** A text, refusal or reasoning goes on. */
export function textDelta(index: number, value: string): GenerateEvent {
  return partDelta(index, { case: "text", value });
}

/** A call's input goes on. */
export function inputDelta(index: number, value: string): GenerateEvent {
  return partDelta(index, { case: "input", value });
}

/** A new summary of a reasoning begins. */
export function summaryStart(index: number): GenerateEvent {
  return partDelta(index, { case: "summaryStart", value: true });
}

/** The last summary of a reasoning goes on. */
export function summaryDelta(index: number, value: string): GenerateEvent {
  return partDelta(index, { case: "summary", value });
}

/** A text refers to a source. */
export function citationDelta(index: number, value: Citation): GenerateEvent {
  return partDelta(index, { case: "citation", value });
}

/** The seal of a reasoning. */
export function sealDelta(index: number, value: ReasoningSeal): GenerateEvent {
  return partDelta(index, { case: "seal", value });
}

function partDelta(index: number, delta: PartDelta["delta"]): GenerateEvent {
  return event({
    case: "partDelta",
    value: { $typeName: "uas.inference.v1.PartDelta", index, delta },
  });
}

function event(kind: GenerateEvent["kind"]): GenerateEvent {
  return { $typeName: "uas.inference.v1.GenerateEvent", kind };
}
