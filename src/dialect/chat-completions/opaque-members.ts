/** Only this style's compatible vendors attach members to a call that must return with it: `extra_content`, with which Gemini
 * and proxies before it carry a thought's signature. Clients of other styles carry them in the seal of a reasoning. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Reasoning } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { partDelta, partEnd, partStart } from "../generate-events.ts";
import type { JsonSource } from "../json/source.ts";
import { isRecord, type JsonRecord } from "../json/value.ts";
import { newPart } from "../parts.ts";

/** The member, of a call or of a message. */
export const opaqueMember = "extra_content";

const mark = `${opaqueMember}:`;

/** The JSON of the member; empty if the object has none, or an empty one. */
export function opaqueText(wire: JsonRecord, source: JsonSource): string {
  const value = wire[opaqueMember];
  return isRecord(value) && Object.keys(value).length > 0 ? source.textOf(value) : "";
}

/** The reasoning that carries the member. @param callId that of its call; empty: it is the message's own */
export function opaqueReasoning(callId: string, json: string): Reasoning {
  return {
    $typeName: "uas.inference.v1.Reasoning",
    text: "",
    summaries: [],
    itemId: "",
    seal: {
      $typeName: "uas.inference.v1.ReasoningSeal",
      dialect: Dialect.CHAT_COMPLETIONS,
      signature: `${mark}${callId}`,
      data: json,
    },
  };
}

/** Adds the reasoning that carries the member to a streamed reply. */
export function opaquePart(
  index: number,
  callId: string,
  json: string,
  events: GenerateEvent[],
): void {
  const { seal, ...reasoning } = opaqueReasoning(callId, json);
  events.push(partStart(index, newPart({ case: "reasoning", value: reasoning })));
  if (seal !== undefined) events.push(partDelta(index, { case: "seal", value: seal }));
  events.push(partEnd(index));
}

/** The member that a reasoning carries; undefined if it carries none. */
export function carriedMember({ seal }: Reasoning): { callId: string; json: string } | undefined {
  const isCarrier = seal?.dialect === Dialect.CHAT_COMPLETIONS && seal.signature.startsWith(mark);
  return isCarrier ? { callId: seal.signature.slice(mark.length), json: seal.data } : undefined;
}
