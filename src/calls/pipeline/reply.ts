/** A vendor's reply: read whole, or as a stream that the gateway can end early. */
import { unusableReply } from "../../routing/upstream-refusal.ts";
import { replyBytesMax } from "../../core/limits.ts";
import { failureError } from "../../routing/upstream-refusal.ts";
import { emptyBuffer } from "../../core/bytes.ts";
import { isWholeObject } from "../../wire/json/scan.ts";
import { missingEnd } from "../../wire/sse/event-stream.ts";
import type { VendorReply, VendorBody } from "../../provider/reply.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/prices/cost.ts";
import { isEventStream } from "../../dialect/whole-reply.ts";
import { type Chunk, isEventType, type ReadRequest, type ReplyStream } from "./adapter.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { GatewayError } from "../../core/errors.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Call } from "./call.ts";
import type { ImageForm } from "../../config/config.ts";

/** Options of {@link StreamReply}. */
interface StreamReplyOptions<Out> {
  readonly call: Call;
  readonly stream: ReplyStream<Out>;
  readonly body: VendorBody;
  /** See {@link ReadRequest.addedTextBytes}. */
  readonly addedTextBytes: (event: Buffer, knownBytes: number) => number;
}

/** The gateway's end of a reply: at its limit with a usage, or with a failure. */
type Cut = { readonly usage: Usage | undefined } | { readonly failure: GatewayError };

/**
 * A vendor's streamed reply, which the gateway can end early. Read it as
 * `while (await reply.ready()) use(reply.take())`, then {@link rest}.
 */
export class StreamReply<Out extends Chunk> {
  readonly #call: Call;
  readonly #stream: ReplyStream<Out>;
  readonly #body: VendorBody;
  readonly #addedTextBytes: StreamReplyOptions<Out>["addedTextBytes"];
  #cut: Cut | undefined;
  #isStopSent = false;
  /** Pieces that came before the first content, for {@link take}. */
  #early: Out[] | undefined;
  #earlySize = 0;
  #isEnded = false;
  /** Received bytes that were not read yet. */
  #unread: readonly Buffer[] | undefined;
  #unreadEventBytes = 0;
  #isEventAllowed = false;
  /** Whether the next event may exceed what may be read at once, so that it is read in parts. */
  #isNextLong = false;

  constructor({ call, stream, body, addedTextBytes }: StreamReplyOptions<Out>) {
    this.#call = call;
    this.#stream = stream;
    this.#body = body;
    this.#addedTextBytes = addedTextBytes;
  }

  /** The usage that the vendor reported so far. */
  get usage(): Usage | undefined {
    return this.#stream.usage;
  }

  /**
   * The estimate that the reply reports in place of the vendor's usage; undefined if there is none.
   */
  get estimated(): Usage | undefined {
    return this.#stream.estimated;
  }

  /** Bytes of generated text so far. */
  get textBytes(): number {
    return this.#stream.textBytes;
  }

  /** Of those, the bytes that came after the usage, which does not count them. */
  get uncountedTextBytes(): number {
    return this.#stream.uncountedTextBytes ?? 0;
  }

  /** The pieces of that text; 0: not counted. */
  get textPieces(): number {
    return this.#stream.textPieces ?? 0;
  }

  /**
   * Bytes of text in an event that exceeds the allowed text. The event is not read before {@link
   * allowEvent}, and not delivered if the reply is stopped instead. 0 if no event waits.
   */
  get unreadEventBytes(): number {
    return this.#unreadEventBytes;
  }

  /** Lets the next {@link take} or {@link rest} read the waiting event. */
  allowEvent(): void {
    this.#unreadEventBytes = 0;
    this.#isEventAllowed = true;
  }

  /** Billable units other than tokens so far. */
  get units(): UnitUsage | undefined {
    return this.#stream.units;
  }

  /** The form of its images, as far as it reports that. */
  get imageForm(): ImageForm | undefined {
    return this.#stream.imageForm;
  }

  /** Whether the terminal event was sent: the client has the whole reply. */
  get isDone(): boolean {
    return this.#stream.done;
  }

  /** Whether the vendor ended the reply itself, completely or with a failure. */
  get isOver(): boolean {
    return this.#stream.finished || this.#stream.failed;
  }

  /** Whether the vendor sent the whole reply. */
  get isComplete(): boolean {
    return this.#stream.finished;
  }

  /** Whether the gateway ended the reply at its limit. */
  get isStopped(): boolean {
    return this.#cut !== undefined && "usage" in this.#cut;
  }

  /** The failure with which the gateway ended the reply; undefined if it did not. */
  get failure(): GatewayError | undefined {
    return this.#cut !== undefined && "failure" in this.#cut ? this.#cut.failure : undefined;
  }

  /**
   * Ends the reply as if it had reached its token limit: the vendor is stopped, {@link rest}
   * returns the end.
   */
  stop(usage: Usage | undefined): void {
    this.#end({ usage });
  }

  /** Ends the reply with a failure: {@link ready} rejects. */
  fail(failure: GatewayError): void {
    this.#end({ failure });
  }

  /**
   * Reads up to the first content, while another vendor could still take the call; {@link take}
   * then returns the received data. Ends early if the vendor reports a failure, or after {@link
   * preludeMs} of events without content.
   *
   * @param endsAtEvent whether to read up to the first event only, with or without content
   * @param onEvent called with each event except keep-alives
   * @throws HttpFailure if the stream broke, or ended without content; GatewayError if the gateway
   * ended it
   */
  async readToContent(endsAtEvent: boolean, onEvent: () => void): Promise<void> {
    let firstMs: number | undefined;
    while (!this.#hasContent() && (this.#unread !== undefined || (await this.#isReady()))) {
      const out = this.#push(earlyTextBytes);
      if (out === undefined) return;
      if (out.length === 0) continue;
      this.#keepEarly(out);
      if (isKeepAlive(out)) continue;
      onEvent();
      if (endsAtEvent) return;
      const nowMs = performance.now();
      firstMs ??= nowMs;
      if (nowMs - firstMs > preludeMs) return;
    }
    if (this.#hasContent() || this.#isLastWaiting(earlyTextBytes)) return;
    this.#isEnded = true;
    const last = this.#stream.end();
    if (last.length > 0) this.#keepEarly(last);
    if (!this.#stream.finished) throw new HttpFailure("reset", "the stream was cut");
  }

  /** Whether more came. @throws as {@link readToContent} */
  async #isReady(): Promise<boolean> {
    try {
      return await this.#body.ready();
    } catch (error) {
      // If the gateway has cancelled the body, its own failure is the cause.
      throw this.failure ?? error;
    }
  }

  /** Whether the vendor reported a failure before the first content. */
  get hasFailedEarly(): boolean {
    return this.#stream.failed && this.#stream.textBytes === 0;
  }

  #hasContent(): boolean {
    const { textBytes, finished, done, failed } = this.#stream;
    return textBytes > 0 || finished || done || failed || this.#earlySize > preludeSizeMax;
  }

  #keepEarly(out: Out): void {
    this.#call.answered();
    this.#early ??= [];
    this.#early.push(out);
    this.#earlySize += out.length;
  }

  /** Resolves to true when there is something to {@link take}, to false at the end. */
  ready(): Promise<boolean> {
    if (this.#early !== undefined) return Promise.resolve(true);
    if (this.#isEnded) return Promise.resolve(false);
    if (this.#cut !== undefined) {
      return this.failure ? Promise.reject(this.failure) : Promise.resolve(false);
    }
    if (this.#stream.failed) {
      this.#call.end(CallEnding.UPSTREAM_FAILED, failureError("reset", undefined));
      return Promise.resolve(false);
    }
    if (this.#stream.isCutShort) {
      this.#body.cancel();
      return Promise.resolve(false);
    }
    return this.#unread === undefined ? this.#body.ready() : Promise.resolve(true);
  }

  /**
   * Returns the received piece for the client: empty if no event is complete yet, undefined if an
   * event waits, see {@link unreadEventBytes}. @param textBytesMax maximum bytes of text to read
   */
  take(textBytesMax = Number.POSITIVE_INFINITY): Out | undefined {
    const early = this.#early?.shift();
    if (early !== undefined) {
      if (this.#early?.length === 0) this.#early = undefined;
      return early;
    }
    const chunk = this.#push(textBytesMax);
    if (chunk !== undefined && chunk.length > 0) this.#call.answered();
    return chunk;
  }

  /**
   * Returns the rest for the client once {@link ready} resolved to false; undefined if there is
   * nothing, or an event waits.
   * @param textBytesMax maximum bytes of text to read @throws HttpFailure if the stream was cut
   */
  rest(textBytesMax = Number.POSITIVE_INFINITY): Out | undefined {
    const stream = this.#stream;
    if (this.#cut !== undefined && "usage" in this.#cut) {
      if (this.#isStopSent) return undefined;
      this.#isStopSent = true;
      return stream.stop(this.#cut.usage);
    }
    if (stream.failed) return undefined;
    if (this.#isEnded) return undefined;
    if (this.#isLastWaiting(textBytesMax)) return undefined;
    const last = stream.end();
    if (last.length > 0) return last;
    // The connection closed cleanly, but without a terminal event the reply is incomplete.
    if (!stream.finished) throw new HttpFailure("reset", "the stream was cut");
    return undefined;
  }

  /** The event that ends a failed stream; empty if the failure is thrown instead. */
  errorEvent(reported: GatewayError): Out {
    return this.#stream.errorEvent(reported);
  }

  /** Converts what came; undefined if an event waits. */
  #push(textBytesMax: number): Out | undefined {
    return this.#pushEvents(textBytesMax) ?? this.#pushBytes(textBytesMax);
  }

  /**
   * Converts a long read up to the event that may exceed `textBytesMax`; undefined means that one
   * is next, or no read is long.
   */
  #pushEvents(textBytesMax: number): Out | undefined {
    const stream = this.#stream;
    const isEventDue = this.#isNextLong || this.#isEventAllowed || this.#unreadEventBytes > 0;
    if (stream.pushUntil === undefined || isEventDue) return undefined;
    const pieces = (this.#unread ??= this.#body.take());
    if (sizeOf(pieces) <= textBytesMax) return undefined;
    const out = stream.pushUntil(pieces, stream.textBytes + textBytesMax);
    this.#unread = stream.unread && [stream.unread];
    this.#isNextLong = this.#unread !== undefined && out.length === 0;
    return this.#isNextLong ? undefined : out;
  }

  /**
   * Converts as many bytes as may be read if all of them are text, or one event; undefined means
   * that one waits.
   */
  #pushBytes(textBytesMax: number): Out | undefined {
    const pieces = this.#unread ?? this.#body.take();
    const end = this.#readable(pieces, textBytesMax);
    this.#unread = end === undefined ? pieces : behind(pieces, end);
    if (end === undefined) return undefined;
    const out = this.#stream.push(this.#unread === undefined ? pieces : upTo(pieces, end));
    if (out.length > 0) this.#isNextLong = false;
    return out;
  }

  /**
   * Returns how many bytes of `pieces` may be read; undefined if they complete an event with too
   * much text, which waits.
   */
  #readable(pieces: readonly Buffer[], textBytesMax: number): number | undefined {
    const { unfinished, textBytes, done } = this.#stream;
    const { restBytes } = unfinished;
    const size = sizeOf(pieces);
    const isAllowed = this.#isEventAllowed;
    this.#isEventAllowed = false;
    if (done || restBytes + size <= textBytesMax) return size;
    const endBytes = unfinished.endIn(pieces);
    // Nothing of an event is passed on before it is complete.
    if (endBytes === 0) return Math.max(textBytesMax, readBytesMin);
    if (restBytes + endBytes <= textBytesMax) return textBytesMax - restBytes;
    if (isAllowed) return endBytes;
    const { rest = emptyBuffer } = unfinished;
    const event = Buffer.concat([rest, ...pieces], restBytes + endBytes);
    const eventBytes = this.#addedTextBytes(event, textBytes);
    if (eventBytes <= textBytesMax) return endBytes;
    this.#unreadEventBytes = eventBytes;
    return undefined;
  }

  /** Whether the last event has too much text, if only its empty line is missing. */
  #isLastWaiting(textBytesMax: number): boolean {
    const missing = missingEnd(this.#stream.unfinished.rest);
    return missing !== undefined && this.#readable([missing], textBytesMax) === undefined;
  }

  #end(cut: Cut): void {
    if (this.#cut !== undefined) return;
    if (this.isOver && this.#unreadEventBytes === 0) return;
    this.#cut = cut;
    // Wakes the pending read.
    this.#body.cancel();
  }
}

/** Minimum bytes per read if they complete no event, whatever is held. */
const readBytesMin = 4_096;

/**
 * Bytes of text that are read before the monitor of the hold begins: every hold covers 64 tokens.
 */
const earlyTextBytes = 256;

function sizeOf(pieces: readonly Buffer[]): number {
  let bytes = 0;
  for (const piece of pieces) bytes += piece.length;
  return bytes;
}

/** The first bytes of pieces. */
function upTo(pieces: readonly Buffer[], end: number): readonly Buffer[] {
  const [first = emptyBuffer] = pieces;
  return [first.length >= end ? first.subarray(0, end) : Buffer.concat(pieces, end)];
}

/** Returns the bytes after the first `end` bytes of pieces; undefined if there are none. */
function behind(pieces: readonly Buffer[], end: number): readonly Buffer[] | undefined {
  let passed = 0;
  for (let index = 0; index < pieces.length; index++) {
    const piece = pieces[index] ?? emptyBuffer;
    if (passed + piece.length > end)
      return [piece.subarray(end - passed), ...pieces.slice(index + 1)];
    passed += piece.length;
  }
  return undefined;
}

/**
 * Maximum time for which events without content are held back. A vendor that continues to send them
 * is working.
 */
const preludeMs = 5_000;

/** Maximum amount without content that is held back: bytes, or events of the contract. */
const preludeSizeMax = 16_384;

const colon = 0x3a;
const pingEvent = Buffer.from("event: ping");

/** Whether a piece holds a comment or a ping, which say nothing about the reply. */
function isKeepAlive(out: Chunk): boolean {
  if (!Buffer.isBuffer(out)) return false;
  return out[0] === colon || out.subarray(0, pingEvent.length).equals(pingEvent);
}

/**
 * Reads the body of a vendor's complete reply; undefined if the reply is streamed. The body is read
 * before its head is sent, so that a cut body becomes an error and not half a reply.
 *
 * @throws GatewayError UPSTREAM_ERROR if the body is neither JSON nor an event stream
 * @throws HttpFailure if the body was cut
 */
export function readCompleteBody(
  reply: VendorReply,
  request: Pick<ReadRequest<Chunk>, "isStreamed" | "readsWholeEvents">,
): Promise<Buffer> | undefined {
  const { headers, body } = reply;
  const type = headers["content-type"] ?? "";
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") throw unusableReply(`content-encoding ${encoding}, not requested`);
  if (request.isStreamed(reply)) return undefined;
  const { readsWholeEvents } = request;
  const isKnown = type.includes("json") || (readsWholeEvents && isEventType(headers));
  if (!isKnown) throw unusableReply(`content-type ${type || "(none)"}`);
  return body.whole(replyBytesMax).then((whole) => requireReply(whole, readsWholeEvents));
}

function requireReply(whole: Buffer, readsWholeEvents: boolean): Buffer {
  // Relayed bodies are not parsed: one that a proxy has cut must not pass for a reply.
  if (isWholeObject(whole) || (readsWholeEvents && isEventStream(whole))) return whole;
  throw unusableReply("a body that is no whole JSON object");
}
