/** Relays a vendor's native stream: the same bytes except for rewritten addresses, and metered. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { joinBuffers, emptyBuffer } from "../core/bytes.ts";
import type { UnitUsage } from "../billing/prices/cost.ts";
import { eventBytesMax } from "../core/limits.ts";
import {
  dataLinesOf,
  dataOf,
  EventSplitter,
  type UnfinishedEvent,
} from "../wire/sse/event-stream.ts";
import type { ReplyStream } from "../calls/pipeline/adapter.ts";
import type { NativeMeter } from "../provider/native.ts";
import { ArraySplitter } from "../wire/json/array-splitter.ts";
import { madeUnits } from "./models.ts";
import { type AddressEdit, AddressRewriter } from "../wire/json/addresses.ts";

/** Options of a native stream. */
export interface NativeStreamOptions {
  readonly meter: NativeMeter;
  /** Rewrites the vendor's addresses to the gateway's. */
  readonly addresses: readonly AddressEdit[];
  /** Called with each object of the stream. Does nothing by default. */
  readonly onObject?: ((json: JsonObject) => void) | undefined;
}

/** The common part of both stream formats. */
abstract class NativeStream implements ReplyStream<Buffer> {
  finished = false;
  protected readonly options: NativeStreamOptions;
  protected readonly rewriter: AddressRewriter;

  constructor(options: NativeStreamOptions) {
    this.options = options;
    this.rewriter = new AddressRewriter(options.addresses);
  }

  abstract readonly unfinished: UnfinishedEvent;
  abstract push(pieces: readonly Buffer[]): Buffer;
  abstract end(): Buffer;
  abstract stop(usage: Usage | undefined): Buffer;

  /** A native stream has no error event of the gateway: the connection breaks instead. */
  errorEvent(): Buffer {
    return emptyBuffer;
  }

  get usage(): Usage | undefined {
    return this.options.meter.usage;
  }

  get textBytes(): number {
    return this.options.meter.textBytes;
  }

  get uncountedTextBytes(): number {
    return this.options.meter.uncountedTextBytes ?? 0;
  }

  get units(): UnitUsage | undefined {
    return madeUnits(this.options.meter);
  }

  /** Whether the vendor reported a failure, which is forwarded like everything else. */
  get failed(): boolean {
    return this.options.meter.isFailed === true;
  }

  get done(): boolean {
    return this.options.meter.isDone;
  }

  protected onObject(bytes: Buffer, start: number, end: number): void {
    const { meter, onObject } = this.options;
    meter.read(bytes, start, end);
    if (onObject === undefined) return;
    const json = parseObject(bytes.toString("utf8", start, end));
    if (json !== undefined) onObject(json);
  }
}

/**
 * Server-sent events: only complete ones are passed on, so that a keep-alive comment can be
 * inserted between them.
 */
export class NativeEvents extends NativeStream {
  unread: Buffer | undefined;
  readonly #splitter = new EventSplitter(eventBytesMax);

  get unfinished(): UnfinishedEvent {
    return this.#splitter;
  }

  push(pieces: readonly Buffer[]): Buffer {
    return this.pushUntil(pieces, Number.POSITIVE_INFINITY);
  }

  pushUntil(pieces: readonly Buffer[], textBytesMax: number): Buffer {
    const source = this.#splitter.begin(pieces);
    const { meter, onObject } = this.options;
    const canSkim = meter.skim !== undefined && onObject === undefined;
    let mayHaveAddress = !canSkim;
    let at = 0;
    this.unread = undefined;
    while (at < source.length) {
      if (canSkim) at = meter.skim?.(source, at, textBytesMax) ?? at;
      const place = at < source.length ? this.#splitter.next(at) : undefined;
      if (place === undefined) break;
      if (place.end - at > textBytesMax - meter.textBytes) {
        this.unread = this.#splitter.leave(at);
        break;
      }
      if (place.dataLines === 1) this.onObject(source, place.dataStart, place.dataEnd);
      else if (place.dataLines > 1) this.#onSplitData(dataOf(source, place));
      at = place.end;
      if (!canSkim || place.dataLines === 0) continue;
      // Events of the same shape as one without an address need no rewriting.
      if (place.dataLines > 1 || this.rewriter.finds(source, place)) mayHaveAddress = true;
      else meter.learn?.(source, place);
    }
    const whole = at === source.length ? source : source.subarray(0, at);
    const passed = mayHaveAddress ? this.rewriter.push(whole) : whole;
    this.#splitter.finish(at, passed);
    return passed;
  }

  /** Passes an incomplete last event on unchanged: clients can handle it. */
  end(): Buffer {
    if (this.finished) return emptyBuffer;
    const { rest = emptyBuffer } = this.#splitter;
    if (rest.length > 0) this.#onRest(rest);
    this.finished = true;
    return joinBuffers([this.rewriter.push(rest), this.rewriter.end()]);
  }

  stop(usage: Usage | undefined): Buffer {
    return Buffer.from(`data: ${this.options.meter.stop(usage)}\r\n\r\n`);
  }

  /** The last event, if only its empty line is missing. */
  #onRest(rest: Buffer): void {
    this.#onSplitData(dataLinesOf(rest.toString()).join("\n"));
  }

  /** Reads data on several lines, as clients do: joined. */
  #onSplitData(data: string): void {
    if (data === "") return;
    const bytes = Buffer.from(data);
    this.onObject(bytes, 0, bytes.length);
  }
}

/** A growing JSON array: passed on object by object, so that it can be closed between two. */
export class NativeArray extends NativeStream {
  readonly #splitter = new ArraySplitter(eventBytesMax, (bytes, start, end) =>
    this.onObject(bytes, start, end),
  );
  #isBegun = false;

  get unfinished(): UnfinishedEvent {
    return this.#splitter;
  }

  push(pieces: readonly Buffer[]): Buffer {
    const passed = this.rewriter.push(this.#splitter.push(joinBuffers(pieces)));
    this.#isBegun ||= passed.length > 0;
    return this.failed ? joinBuffers([passed, this.#close(passed)]) : passed;
  }

  /** The rest of an array in which the vendor reported a failure: behind that, nothing is read. */
  #close(passed: Buffer): Buffer {
    const rest = this.rewriter.end();
    const last = joinBuffers([passed, rest]).toString("latin1").trimEnd();
    return last.endsWith("]") ? rest : joinBuffers([rest, Buffer.from("]")]);
  }

  end(): Buffer {
    this.finished = this.#splitter.restBytes === 0;
    return this.rewriter.end();
  }

  stop(usage: Usage | undefined): Buffer {
    return Buffer.from(`${this.#isBegun ? "," : "["}\n${this.options.meter.stop(usage)}]`);
  }
}

/** Parses a JSON object; undefined if the text is none. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
