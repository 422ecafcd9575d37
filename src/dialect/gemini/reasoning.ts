/**
 * Thought signatures. Gemini requires each signature back at its original position. Other styles
 * attach a seal to reasoning only; Gemini may attach one to any part, so our seal contains the
 * position. Google's signatures are base64 and contain no dot.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { ReasoningSeal } from "../../../gen/uas/inference/v1/conversation_pb.ts";

/**
 * `call`: on the function call that follows the reasoning; `thought`: on the thought itself;
 * `content`: on the text or picture before the reasoning.
 */
export type SealPlace = "call" | "thought" | "content";

const marks = { thought: "thought.", content: "content." } as const;

/** Gemini's seal: for a call, nearly all there are, it is the signature as it came. */
export function sealOf(signature: string, place: SealPlace): ReasoningSeal {
  return {
    $typeName: "uas.inference.v1.ReasoningSeal",
    dialect: Dialect.GEMINI,
    signature: place === "call" ? signature : marks[place] + signature,
    data: "",
  };
}

/** Reads back a seal of {@link sealOf}. */
export function openPlace({ signature }: ReasoningSeal): {
  readonly signature: string;
  readonly place: SealPlace;
} {
  for (const place of ["thought", "content"] as const) {
    const mark = marks[place];
    if (signature.startsWith(mark)) return { signature: signature.slice(mark.length), place };
  }
  return { signature, place: "call" };
}
