/** Replies between two styles: what a vendor says in its own, written in the caller's. Pure. */
import type { Part } from "../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  type Reply,
  type ReplyEnd,
  type ReplyError,
  StopReason,
} from "../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { emptyBuffer } from "../core/bytes.ts";
import { ErrorCode, GatewayError, type SentErrorCode } from "../core/errors.ts";
import type { ToolCalls } from "./features/billed-features.ts";
import type { CallerCodec, ReplyOptions, StreamEncoder, VendorCodec } from "./codec.ts";
import type { ReplyDecoder, StoppingDecoder } from "./stop-sequences.ts";
import type { RelayedReply, StreamRelay } from "./dialect.ts";
import { lengthEnd, replyEvents, replyTextBytes } from "./reply-events.ts";
import { countTools, ToolCallCount } from "./tools/tool-calls.ts";
import type { UnfinishedEvent } from "../wire/sse/event-stream.ts";
import type { ToolRestorer } from "./tools/tool-restorer.ts";
import { isOperatorFault, outOfService } from "./vendor-error.ts";

/** A translation between two styles. */
export interface Translation {
  readonly vendor: ReplyDecoder;
  readonly caller: CallerCodec;
  readonly options: ReplyOptions;
  /** Gives tools their own names back. */
  readonly tools: ToolRestorer;
  /**
   * The usage that a complete reply is charged by: the vendor's, or the gateway's estimate
   * (R-MON-8).
   */
  readonly charged: ChargedUsage;
  /** Splits a whole reply into its choices, if the request is for several. Absent if it has one. */
  readonly splitChoices?: VendorCodec["splitChoices"];
  /** Receives the vendor's reply before it is written. Default: no watcher. */
  readonly watcher?: ReplyWatcher | undefined;
  /** Rewrites the reply once it is counted. Default: no rewriter. */
  readonly rewriter?: ReplyRewriter | undefined;
}

/** Decides the usage of a complete reply. */
export type ChargedUsage = (text: CompleteText) => UsageOfReply;

/** The usage of a complete reply. */
export interface UsageOfReply {
  /**
   * The figures of the vendor, or the estimate in their place; undefined if nothing is charged.
   */
  readonly due: Usage | undefined;
  /** The usage that the client sees: `due`, limited to plausible figures (R-MON-15). */
  readonly told: Usage | undefined;
}

/** Facts about a complete reply. */
export interface CompleteText {
  /** The vendor's figures; undefined if there is none. */
  readonly reported: Usage | undefined;
  /** Bytes of generated text. */
  readonly textBytes: number;
  /** See {@link StreamRelay.uncountedTextBytes}. */
  readonly uncountedTextBytes?: number;
  /** Calls of tools that the usage does not report. Default: none. */
  readonly units?: ToolCalls | undefined;
  /**
   * Whether the input is charged without any text: a stop sequence of the request ended the reply.
   */
  readonly isInputOwed: boolean;
}

/** Sees a reply in the contract's words. */
export interface ReplyWatcher {
  addParts(parts: readonly Part[]): void;
  addEvents(events: readonly GenerateEvent[]): void;
}

/** Makes another reply of what the vendor said, before it is written. */
export interface ReplyRewriter {
  /** Rewrites a whole reply in place. @throws UnreadableReplyError if it has not what is needed */
  reply(reply: Reply): void;
  /** Rewrites events. An error in place of the end makes the reply a failed one. */
  events(events: readonly GenerateEvent[]): readonly GenerateEvent[];
}

/**
 * Translates a whole reply.
 *
 * @throws UnreadableReplyError
 */
export function translateReply(body: Buffer, translation: Translation): RelayedReply {
  const { caller, options, splitChoices } = translation;
  if (splitChoices !== undefined) return translateChoices(splitChoices(body), translation);
  const { reply, ...read } = readReply(body, translation);
  return { body: caller.encodeReply(reply, options), ...read };
}

/** Translates the choices of a whole reply, whose usage covers all of them. */
function translateChoices(bodies: readonly Buffer[], translation: Translation): RelayedReply {
  const { caller, options, charged } = translation;
  const reported = { ...translation, charged: asReported };
  const read = bodies.map((body) => readReply(body, reported));
  const textBytes = read.reduce((sum, each) => sum + each.textBytes, 0);
  const units = countTools(read.flatMap(({ reply }) => reply.parts));
  const usage = read[0]?.usage;
  const isStopped = read.some(({ reply }) => reply.stopReason === StopReason.STOP_SEQUENCE);
  const { due, told } = charged({ reported: usage, textBytes, units, isInputOwed: isStopped });
  const isEstimated = due !== usage && due !== undefined;
  const written = read.map(({ reply }) => {
    if (told !== undefined) reply.usage = told;
    return caller.encodeReply(reply, options);
  });
  const body = caller.joinChoices?.(written) ?? written[0] ?? emptyBuffer;
  return { body, usage, textBytes, units, ...(isEstimated && { estimated: due }) };
}

/**
 * Writes a whole reply as a stream, for a vendor that does not stream although a stream was
 * requested.
 *
 * @throws UnreadableReplyError
 */
export function translateToStream(body: Buffer, translation: Translation): RelayedReply {
  const { reply, ...read } = readReply(body, translation);
  const encoder = translation.caller.encodeStream(translation.options);
  const text = replyEvents(reply).map((event) => encoder.push(event));
  return { body: Buffer.from(text.join("")), ...read };
}

/** A vendor's whole reply, with the usage that it is charged by. */
function readReply(
  body: Buffer,
  { vendor, options, tools, watcher, rewriter, charged }: Translation,
): { readonly reply: Reply } & Omit<RelayedReply, "body"> {
  const reply = tools.reply(vendor.decodeReply(body));
  watcher?.addParts(reply.parts);
  reply.model = options.model;
  const textBytes = replyTextBytes(reply);
  const { usage } = reply;
  const isInputOwed = reply.stopReason === StopReason.STOP_SEQUENCE;
  const units = countTools(reply.parts);
  const { due, told } = charged({ reported: usage, textBytes, units, isInputOwed });
  rewriter?.reply(reply);
  if (told !== undefined) reply.usage = told;
  if (due === usage || due === undefined) return { reply, usage, textBytes, units };
  return { reply, usage, textBytes, units, estimated: due };
}

/** Each of several choices has the vendor's figures of all: they are decided together. */
export const asReported: ChargedUsage = ({ reported }) => ({ due: reported, told: reported });

/** The state of a streamed call, independent of its output style. */
export abstract class EventReply {
  protected readonly source: EventStream;

  constructor(source: EventStream) {
    this.source = source;
  }

  get usage(): Usage | undefined {
    return this.source.usage;
  }

  get estimated(): Usage | undefined {
    return this.source.estimated;
  }

  get textBytes(): number {
    return this.source.textBytes;
  }

  get uncountedTextBytes(): number {
    return this.source.uncountedTextBytes;
  }

  get textPieces(): number {
    return this.source.textPieces;
  }

  get units(): ToolCalls | undefined {
    return this.source.units;
  }

  get unfinished(): UnfinishedEvent {
    return this.source.unfinished;
  }

  get finished(): boolean {
    return this.source.finished;
  }

  get done(): boolean {
    return this.source.finished;
  }

  get failed(): boolean {
    return this.source.failure !== undefined;
  }

  get isCutShort(): boolean {
    return this.source.isCutShort;
  }
}

/** A stream while it is translated. */
export class TranslatedStream extends EventReply implements StreamRelay {
  readonly #encoder: StreamEncoder;
  readonly #watcher: ReplyWatcher | undefined;
  readonly #rewriter: ReplyRewriter | undefined;

  constructor({ vendor, caller, options, tools, watcher, rewriter, charged }: Translation) {
    super(new EventStream(vendor.decodeStream(), tools, charged));
    this.#watcher = watcher;
    this.#rewriter = rewriter;
    this.#encoder = caller.encodeStream(options);
  }

  push(pieces: readonly Buffer[]): Buffer {
    return this.failed ? emptyBuffer : this.#write(this.source.push(pieces));
  }

  end(): Buffer {
    return this.failed ? emptyBuffer : this.#write(this.source.end());
  }

  errorEvent(error: GatewayError): Buffer {
    return Buffer.from(this.#encoder.fail(error));
  }

  stop(usage: Usage | undefined): Buffer {
    const end = [lengthEnd(usage)];
    const events = this.#rewriter?.events(end) ?? end;
    return Buffer.from(events.map((event) => this.#encoder.push(event)).join(""));
  }

  #write(events: readonly GenerateEvent[]): Buffer {
    let text = "";
    this.#watcher?.addEvents(events);
    for (const event of this.#rewriter?.events(events) ?? events) {
      text +=
        event.kind.case === "error"
          ? this.#encoder.fail(this.source.fail(event.kind.value))
          : this.#encoder.push(event);
    }
    return text === "" ? emptyBuffer : Buffer.from(text);
  }
}

/** A vendor's stream as events, and what they say of the call. */
export class EventStream {
  /** Bytes of generated text so far. */
  textBytes = 0;
  /** Number of events with that text. */
  textPieces = 0;
  /** Whether the vendor ended the reply itself. */
  finished = false;
  /** The failure that the vendor reported instead of an end. */
  failure: GatewayError | undefined;
  /**
   * The gateway's estimate that the end reports; undefined if it has the vendor's figures, or none.
   */
  estimated: Usage | undefined;

  /** The usage that {@link #countedTextBytes} belongs to. */
  #counted: Usage | undefined;
  /** The text that had come with the usage. */
  #countedTextBytes = 0;
  readonly #decoder: StoppingDecoder;
  readonly #tools: ToolRestorer;
  readonly #charged: ChargedUsage;
  readonly #count = new ToolCallCount();

  constructor(decoder: StoppingDecoder, tools: ToolRestorer, charged: ChargedUsage) {
    this.#decoder = decoder;
    this.#tools = tools;
    this.#charged = charged;
  }

  /** The usage reported so far. */
  get usage(): Usage | undefined {
    return this.#decoder.usage;
  }

  /**
   * Bytes of text that came after the usage. What is received in one piece with it counts as
   * counted.
   */
  get uncountedTextBytes(): number {
    const { usage } = this;
    const isCounted = usage === undefined || usage !== this.#counted;
    return isCounted ? 0 : this.textBytes - this.#countedTextBytes;
  }

  /** Calls so far of tools that usage does not report. */
  get units(): ToolCalls | undefined {
    return this.#count.calls;
  }

  /** Whether a stop sequence ended the reply before its vendor did. */
  get isCutShort(): boolean {
    return this.#decoder.isCutShort === true;
  }

  /** The event that is not complete. */
  get unfinished(): UnfinishedEvent {
    return this.#decoder.unfinished;
  }

  /** The events that `pieces` complete. Nothing follows an end or an error. */
  push(pieces: readonly Buffer[]): GenerateEvent[] {
    return this.#note(this.#tools.events(this.#decoder.push(pieces)));
  }

  /** The vendor has closed the stream. */
  end(): GenerateEvent[] {
    return this.#note(this.#tools.events(this.#decoder.end()));
  }

  /** Marks the reply as failed, if it is not already. @returns its failure */
  fail(error: ReplyFailure): GatewayError {
    this.finished = false;
    return (this.failure ??= streamFailure(error));
  }

  #note(events: GenerateEvent[]): GenerateEvent[] {
    if (this.finished || this.failure !== undefined) return [];
    let inputBytes = 0;
    for (const [at, { kind }] of events.entries()) {
      if (kind.case === "partDelta") {
        const { delta } = kind.value;
        if (typeof delta.value !== "string" || delta.value === "") continue;
        this.textPieces += 1;
        const bytes = Buffer.byteLength(delta.value);
        this.textBytes += bytes;
        if (delta.case === "input") inputBytes += bytes;
      } else if (kind.case === "partStart") this.#count.addPart(kind.value.part);
      else if (kind.case === "end") {
        this.finished = true;
        // Inputs that were held back until their call was whole: the vendor sent them before its
        // figures.
        this.#countedTextBytes += inputBytes;
        this.#noteUsage();
        this.#setUsage(kind.value);
        return events.slice(0, at + 1);
      } else if (kind.case === "error") {
        this.failure = streamFailure(kind.value);
        return events.slice(0, at + 1);
      }
    }
    this.#noteUsage();
    return events;
  }

  /** All events that were received with the usage are read. */
  #noteUsage(): void {
    const { usage } = this;
    if (usage === this.#counted) return;
    this.#counted = usage;
    this.#countedTextBytes = this.textBytes;
  }

  #setUsage(end: ReplyEnd): void {
    const { usage, units, textBytes, uncountedTextBytes, isCutShort: isInputOwed } = this;
    const text = { reported: usage, units, textBytes, uncountedTextBytes, isInputOwed };
    const { due, told } = this.#charged(text);
    if (told !== undefined) end.usage = told;
    if (due !== usage && due !== undefined) this.estimated = due;
  }
}

type ReplyFailure = Pick<ReplyError, "code" | "message">;

function streamFailure({ code, message }: ReplyFailure): GatewayError {
  const isOperators = isOperatorFault({ code: "", type: "", message });
  if (isOperators || code === ErrorCode.SERVICE_UNAVAILABLE) return outOfService();
  const known = code === ErrorCode.UNSPECIFIED ? ErrorCode.UPSTREAM_ERROR : (code as SentErrorCode);
  return new GatewayError(known, message || "The model's vendor failed; try again");
}
