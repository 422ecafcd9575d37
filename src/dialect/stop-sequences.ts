/**
 * Applies the stop sequences that a vendor cannot: the text ends before the first one, and nothing
 * follows. Pure.
 */
import { create } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  GenerateEventSchema,
  type Reply,
  StopReason,
} from "../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { stopSequenceCharsMax, stopSequencesMax } from "../core/limits.ts";
import { invalid } from "../core/validation.ts";
import type { StreamDecoder, VendorCodec } from "./codec.ts";
import { decodeWhole } from "./whole-reply.ts";
import type { UnfinishedEvent } from "../wire/sse/event-stream.ts";

/** Decodes a vendor's replies, and applies the stop sequences that the vendor does not support. */
export interface ReplyDecoder {
  /** See {@link VendorCodec.decodeReply}. */
  decodeReply(body: Buffer): Reply;
  /** See {@link VendorCodec.decodeStream}. */
  decodeStream(): StoppingDecoder;
}

/** A stream that may end before its vendor does. */
export interface StoppingDecoder extends StreamDecoder {
  /**
   * Whether a stop sequence ended the reply, so that the vendor is to be stopped. Absent if none
   * can.
   */
  readonly isCutShort?: boolean;
}

/** Options for applying stop sequences. */
export interface StopOptions {
  /** Stop sequences of the request. */
  readonly stop: readonly string[];
  /**
   * Whether the vendor's reply is read to its end: the vendor charges for reasoning even if the
   * client disconnects. Its usage is then complete, and arrives with the end of the reply.
   */
  readonly isReadToEnd: boolean;
}

/**
 * The stop sequences that a vendor does not get. @throws GatewayError INVALID_REQUEST if they are
 * too many or too long
 */
export function ownStops(
  { sentStops }: Pick<VendorCodec, "sentStops">,
  stop: readonly string[],
): readonly string[] {
  if (stop.length === 0 || sentStops === undefined) return [];
  const sent = new Set(sentStops(stop));
  const own = stop.filter((each) => each !== "" && !sent.has(each));
  if (own.length > stopSequencesMax || own.some((each) => each.length > stopSequenceCharsMax)) {
    const most = `${stopSequencesMax} of at most ${stopSequenceCharsMax} characters`;
    throw invalid(
      "stop",
      `this model accepts fewer or shorter stop sequences: send at most ${most}`,
    );
  }
  return own;
}

/** The decoder of a vendor's replies for a request. @throws GatewayError INVALID_REQUEST */
export function withStops(codec: VendorCodec, { stop, isReadToEnd }: StopOptions): ReplyDecoder {
  const own = ownStops(codec, stop);
  const decodeReply = (body: Buffer): Reply => decodeWhole(codec, body);
  if (own.length === 0) return { decodeReply, decodeStream: () => codec.decodeStream() };
  return {
    decodeReply: (body) => stopReply(decodeReply(body), own),
    decodeStream: () => new StopSequenceDecoder(codec.decodeStream(), own, isReadToEnd),
  };
}

/** Cuts a whole reply. Its usage stays: the vendor generated all of it. */
function stopReply(reply: Reply, stops: readonly string[]): Reply {
  for (const [at, { kind }] of reply.parts.entries()) {
    if (kind.case !== "text") continue;
    const found = findStop(kind.value.text, stops);
    if (found === undefined) continue;
    kind.value.text = kind.value.text.slice(0, found.start);
    reply.parts = reply.parts.slice(0, at + 1);
    reply.stopReason = StopReason.STOP_SEQUENCE;
    reply.stopSequence = found.stop;
    break;
  }
  return reply;
}

interface FoundStop {
  readonly start: number;
  readonly end: number;
  readonly stop: string;
}

/**
 * The stop sequence in a text that is complete first, however the text comes in pieces; of several
 * the longest.
 */
function findStop(text: string, stops: readonly string[]): FoundStop | undefined {
  let best: FoundStop | undefined;
  for (const stop of stops) {
    const start = text.indexOf(stop);
    const end = start + stop.length;
    if (start < 0 || (best !== undefined && end > best.end)) continue;
    if (best === undefined || end < best.end || start < best.start) best = { start, end, stop };
  }
  return best;
}

/** The length of the end of a text that may be the beginning of a stop sequence. */
function undecided(text: string, stops: readonly string[]): number {
  let most = 0;
  for (const stop of stops) {
    let length = Math.min(stop.length - 1, text.length);
    while (length > most && !text.endsWith(stop.slice(0, length))) length--;
    most = Math.max(most, length);
  }
  return most;
}

class StopSequenceDecoder implements StoppingDecoder {
  readonly #source: StreamDecoder;
  readonly #stops: readonly string[];
  readonly #isReadToEnd: boolean;
  /** The parts that have not ended, and of texts what is held back. */
  readonly #open = new Map<number, string | undefined>();
  #found = "";

  constructor(source: StreamDecoder, stops: readonly string[], isReadToEnd: boolean) {
    this.#source = source;
    this.#stops = stops;
    this.#isReadToEnd = isReadToEnd;
  }

  get isCutShort(): boolean {
    return this.#found !== "" && !this.#isReadToEnd;
  }

  /** The usage of a stopped vendor is not a total. */
  get usage(): Usage | undefined {
    return this.isCutShort ? undefined : this.#source.usage;
  }

  get unfinished(): UnfinishedEvent {
    return this.#source.unfinished;
  }

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    return this.isCutShort ? [] : this.#cut(this.#source.push(pieces));
  }

  end(): GenerateEvent[] {
    return this.isCutShort ? [] : this.#cut(this.#source.end());
  }

  #cut(events: readonly GenerateEvent[]): GenerateEvent[] {
    const out: GenerateEvent[] = [];
    for (const event of events) {
      if (this.#found === "") this.#pass(event, out);
      else if (event.kind.case === "end") out.push(this.#ended(event));
      else if (event.kind.case === "error") out.push(event);
      if (this.isCutShort) break;
    }
    return out;
  }

  #pass(event: GenerateEvent, out: GenerateEvent[]): void {
    const { kind } = event;
    if (kind.case === "partStart") {
      const { index, part } = kind.value;
      this.#open.set(index, part?.kind.case === "text" ? "" : undefined);
    } else if (kind.case === "partDelta" && kind.value.delta.case === "text") {
      const held = this.#open.get(kind.value.index);
      if (held === undefined) out.push(event);
      else this.#text(kind.value.index, held + kind.value.delta.value, out);
      return;
    } else if (kind.case === "partEnd") {
      this.#flush(kind.value.index, out);
      this.#open.delete(kind.value.index);
    } else if (kind.case === "end") {
      for (const index of this.#open.keys()) this.#flush(index, out);
    }
    out.push(event);
  }

  #text(index: number, text: string, out: GenerateEvent[]): void {
    const found = findStop(text, this.#stops);
    if (found === undefined) {
      const held = undecided(text, this.#stops);
      this.#open.set(index, text.slice(text.length - held));
      if (held < text.length) out.push(textDelta(index, text.slice(0, text.length - held)));
      return;
    }
    if (found.start > 0) out.push(textDelta(index, text.slice(0, found.start)));
    this.#found = found.stop;
    for (const each of this.#open.keys()) {
      out.push(create(GenerateEventSchema, { kind: { case: "partEnd", value: { index: each } } }));
    }
    if (this.#isReadToEnd) return;
    const value = { stopReason: StopReason.STOP_SEQUENCE, stopSequence: found.stop };
    out.push(create(GenerateEventSchema, { kind: { case: "end", value } }));
  }

  #flush(index: number, out: GenerateEvent[]): void {
    const held = this.#open.get(index);
    if (held) out.push(textDelta(index, held));
    if (held !== undefined) this.#open.set(index, "");
  }

  /** The vendor's own end, for another reason. */
  #ended(event: GenerateEvent): GenerateEvent {
    if (event.kind.case !== "end") return event;
    event.kind.value.stopReason = StopReason.STOP_SEQUENCE;
    event.kind.value.stopSequence = this.#found;
    return event;
  }
}

function textDelta(index: number, text: string): GenerateEvent {
  const delta = { case: "text" as const, value: text };
  return create(GenerateEventSchema, { kind: { case: "partDelta", value: { index, delta } } });
}
