/** What all parts of a request body that is being written share: whose style it came in, and what is lost. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  ReasoningSealSchema,
  type Extra,
  type Part,
  type ReasoningSeal,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  StopReason,
  type GenerateEvent,
  type PartDelta,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { ErrorCode, type SentErrorCode } from "../../core/errors.ts";
import { invalid } from "../body-members.ts";
import type { ReplyOptions, VendorError } from "../codec.ts";
import { isRecord, recordAt, textAt, type JsonRecord } from "../json/value.ts";

/** A request body while it is written. */
export class WireBody {
  /** Whether the request came in this style: then it is written as it was, where that makes a difference. */
  readonly isOwn: boolean;
  /** That style; `undefined`: a typed caller. */
  readonly source: Dialect | undefined;
  readonly #dropped = new Set<string>();

  constructor(source: Dialect | undefined) {
    this.source = source;
    this.isOwn = source === Dialect.CHAT_COMPLETIONS;
  }

  /** What could not be carried. Each name once. */
  get dropped(): readonly string[] {
    return [...this.#dropped];
  }

  /** Notes that something cannot be carried. */
  drop(name: string): void {
    this.#dropped.add(name);
  }

  /** Writes extras of this style back into the object that they came from: `function.x` into its member
   * `function`. Those of other styles are dropped. */
  writeExtras(target: Record<string, unknown>, extras: readonly Extra[]): void {
    for (const { name, json } of extras) {
      if (this.isOwn) writeAt(target, name, parseJson(json, name));
      else this.drop(name);
    }
  }
}

/** JSON from the contract. @throws GatewayError INVALID_REQUEST where it is none; `param` names the field */
export function parseJson(json: string, param: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw invalid(`"${param}" is not valid JSON`, param);
  }
}

/** Never over what is there already: a client can give a member any name, also one with a dot. */
function writeAt(target: Record<string, unknown>, name: string, value: unknown): void {
  const dot = name.indexOf(".");
  const inner = dot < 0 ? undefined : target[name.slice(0, dot)];
  if (isRecord(inner)) return writeAt(inner, name.slice(dot + 1), value);
  if (Object.hasOwn(target, name)) return;
  // Not by assignment: `__proto__` is a name like any other.
  Object.defineProperty(target, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}

/* What whole and streamed replies to a client have in common. */

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

/* Reasoning in chat completions: none of OpenAI's own, but compatible vendors show it, and some must get
 * it back with the calls that it led to. */

/** The members under which vendors of this style show reasoning: the first is the more common. */
export const reasoningMembers = ["reasoning_content", "reasoning"] as const;

/** What marks reasoning as this style's own: no vendor of another style gets it, and those of this one get
 * it under the same name. */
export function sealOf(member: string): ReasoningSeal {
  return create(ReasoningSealSchema, { dialect: Dialect.CHAT_COMPLETIONS, signature: member });
}

/* Errors in the forms that vendors of this style have for them. */

/** The error in a body or an event; `undefined` where it tells none. */
export function readVendorError(wire: JsonRecord): VendorError | undefined {
  const error = recordAt(wire, "error") ?? (wire["object"] === "error" ? wire : undefined);
  if (error !== undefined) {
    return { message: textAt(error, "message") || "no message", code: readCode(error) };
  }
  const text = textAt(wire, "error") || ("choices" in wire ? "" : plainMessage(wire));
  return text === "" ? undefined : { message: text, code: readCode(wire) };
}

/** Servers that know nothing of the style, for example proxies before the vendor's own. */
function plainMessage(wire: JsonRecord): string {
  return textAt(wire, "message") || textAt(wire, "detail");
}

function readCode(error: JsonRecord): string {
  const { code } = error;
  if (typeof code === "string" && code !== "") return code;
  return textAt(error, "type") || (typeof code === "number" ? String(code) : "");
}

/** What an error in the middle of a stream is to the caller. */
export function midStreamCode({ code }: VendorError): SentErrorCode {
  if (/rate.?limit|^429$/i.test(code)) return ErrorCode.RATE_LIMIT_EXCEEDED;
  if (/overload|unavailable|^(?:503|529)$/i.test(code)) return ErrorCode.UPSTREAM_OVERLOADED;
  if (/time.?out|^(?:408|504)$/i.test(code)) return ErrorCode.UPSTREAM_TIMEOUT;
  return ErrorCode.UPSTREAM_ERROR;
}

/* Makes events of the contract as `create` would, without going through the schema for each chunk. */

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
