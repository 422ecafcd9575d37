/** Events, made by hand: `create` costs more than all the rest of a chunk. */
import type { Part, Reasoning } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";

type Kind = GenerateEvent["kind"];

/** Wraps what happened. */
export function event(kind: Kind): GenerateEvent {
  return { $typeName: "uas.inference.v1.GenerateEvent", kind };
}

/** A part begins. */
export function partStart(index: number, kind: Part["kind"]): GenerateEvent {
  const part: Part = { $typeName: "uas.inference.v1.Part", kind, extras: [] };
  return event({
    case: "partStart",
    value: { $typeName: "uas.inference.v1.PartStart", index, part },
  });
}

/** A part goes on. */
export function partDelta(index: number, delta: PartDelta["delta"]): GenerateEvent {
  return event({
    case: "partDelta",
    value: { $typeName: "uas.inference.v1.PartDelta", index, delta },
  });
}

/** A part is complete. */
export function partEnd(index: number): GenerateEvent {
  return event({ case: "partEnd", value: { $typeName: "uas.inference.v1.PartEnd", index } });
}

/** An empty text, to be filled. */
export function emptyText(): Part["kind"] {
  return {
    case: "text",
    value: { $typeName: "uas.inference.v1.TextPart", text: "", citations: [] },
  };
}

/** An empty reasoning, to be filled. */
export function emptyReasoning(): Part["kind"] {
  const value: Reasoning = {
    $typeName: "uas.inference.v1.Reasoning",
    text: "",
    summaries: [],
    itemId: "",
  };
  return { case: "reasoning", value };
}
