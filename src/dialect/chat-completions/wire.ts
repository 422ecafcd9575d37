/** Helpers for replies in this style. */
import { createHash } from "node:crypto";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Part, ReasoningSeal } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { VendorQuirks } from "../../core/vendor-quirks.ts";
import type { ReplyOptions } from "../codec.ts";
import { hasMembers } from "./opaque-members.ts";
import { type JsonRecord, recordAt, recordsAt, textAt } from "../../wire/json/value.ts";

/** The reply's id: the vendor's if it has the expected form, otherwise a generated one. */
export function replyId(vendorId: string, callId: string): string {
  return vendorId.startsWith("chatcmpl") ? vendorId : `chatcmpl-${callId}`;
}

/** Why a reply ended. */
interface Ending {
  readonly stopReason: StopReason;
  readonly stopSequence: string;
  readonly stopDetail: string;
}

/** Reports members that the style cannot carry, each name once. */
export class LostMembers {
  readonly #names = new Set<string>();
  readonly #onDropped: ReplyOptions["onDropped"];

  constructor({ onDropped }: ReplyOptions) {
    this.#onDropped = onDropped;
  }

  /** Reports a member. */
  add(name: string): void {
    if (this.#names.has(name)) return;
    this.#names.add(name);
    this.#onDropped(name);
  }

  /** Reports a part that is lost completely. */
  addPart({ kind }: Part): void {
    if (kind.case !== undefined) this.add(kind.case === "opaque" ? kind.value.type : kind.case);
  }

  /** Reports a reasoning seal of another style. */
  addSeal(seal: ReasoningSeal | undefined): void {
    if (seal !== undefined && seal.dialect !== Dialect.CHAT_COMPLETIONS) this.add("reasoning.seal");
  }

  /**
   * Reports details of the end that have no member. Returns the text of a refusal that is shown
   * nowhere else.
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

/** Returns the text of a message or delta; empty if it has none. */
export function readText(said: JsonRecord): string {
  const { content } = said;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? joinTexts(recordsAt(said, "content")) : "";
}

export function joinTexts(parts: readonly JsonRecord[]): string {
  return parts
    .filter(({ type }) => type === "text")
    .map((part) => textAt(part, "text"))
    .join("");
}

/**
 * Returns the calls of a delta or message. Present but empty members do not count, and a legacy
 * call next to others repeats them.
 */
export function callsIn(said: JsonRecord): readonly JsonRecord[] {
  const calls = recordsAt(said, "tool_calls").filter(saysCall);
  const legacy = recordAt(said, "function_call");
  const only = legacy === undefined ? [] : [{ index: 0, function: legacy }].filter(saysCall);
  return calls.length > 0 ? calls : only;
}

/**
 * Reads a call's tool, and whether it is a custom tool. A form that is present but empty counts as
 * absent.
 */
export function calledTool(wire: JsonRecord): { called: JsonRecord; isCustom: boolean } {
  const custom = recordAt(wire, "custom") ?? {};
  const called = recordAt(wire, "function") ?? {};
  const isFunction = Object.keys(called).length > 0;
  const isCustom = Object.keys(custom).length > 0 || (wire["type"] === "custom" && !isFunction);
  return { called: isCustom ? custom : called, isCustom };
}

function saysCall(wire: JsonRecord): boolean {
  const { called } = calledTool(wire);
  const input = called["arguments"] ?? called["input"] ?? "";
  const isNamed = textAt(wire, "id") !== "" || textAt(called, "name") !== "";
  return isNamed || input !== "" || hasMembers(wire);
}

/** Generates the id of a call without one. Unique within a conversation, like the reply's id. */
export function generatedCallId(vendorId: string, number: number): string {
  return `call_${vendorId.replaceAll(/[^\w-]/g, "").slice(-24)}_${number}`;
}

/** The most characters that vendors of this style take for a call's id. */
const callIdCharsMax = 40;

/**
 * The id of a call as vendors take it. The same id always becomes the same other one, so that
 * results find their call.
 *
 * @param form see {@link VendorQuirks.callIds}
 */
export function wireCallId(id: string, form: VendorQuirks["callIds"]): string {
  const isShort = form === "alphanumeric_9";
  if (isShort ? /^[a-zA-Z0-9]{9}$/.test(id) : id.length <= callIdCharsMax) return id;
  const digest = createHash("sha256").update(id).digest("hex");
  return isShort ? digest.slice(0, 9) : `call_${digest.slice(0, 32)}`;
}
