/** What all parts of a request body that is being written share: whose style it came in, and what is lost. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Part, ReasoningSeal } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ReplyOptions } from "../codec.ts";

/** The reply's id: the vendor's, where it looks as clients expect. */
export function replyId(vendorId: string, callId: string): string {
  return vendorId.startsWith("chatcmpl") ? vendorId : `chatcmpl-${callId}`;
}

/** Why a reply ended. */
interface Ending {
  readonly stopReason: StopReason;
  readonly stopSequence: string;
  readonly stopDetail: string;
}

/** Tells what the style cannot carry, each name once. */
export class LostMembers {
  readonly #names = new Set<string>();
  readonly #onDropped: ReplyOptions["onDropped"];

  constructor({ onDropped }: ReplyOptions) {
    this.#onDropped = onDropped;
  }

  /** Something that has no place here. */
  add(name: string): void {
    if (this.#names.has(name)) return;
    this.#names.add(name);
    this.#onDropped(name);
  }

  /** A part of which nothing is left. */
  addPart({ kind }: Part): void {
    if (kind.case !== undefined) this.add(kind.case === "opaque" ? kind.value.type : kind.case);
  }

  /** What seals reasoning. Of this style's own, only the text counts. */
  addSeal(seal: ReasoningSeal | undefined): void {
    if (seal !== undefined && seal.dialect !== Dialect.CHAT_COMPLETIONS) this.add("reasoning.seal");
  }

  /**
   * What of the ending has no place here. Returns the text of a refusal that is told nowhere else.
   *
   * @param hasRefusal whether the reply has a refusal already
   */
  ending({ stopReason, stopSequence, stopDetail }: Ending, hasRefusal: boolean): string {
    if (stopSequence !== "") this.add("stop_sequence");
    if (stopReason === StopReason.PAUSE) this.add("stop_reason");
    if (stopDetail === "") return "";
    if (stopReason === StopReason.REFUSAL && !hasRefusal) return stopDetail;
    this.add("stop_detail");
    return "";
  }
}
