/** A vendor's stream on its way to the caller: the same bytes but for addresses, read on the side for what it costs. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { join, nothing } from "../core/bytes.ts";
import type { UnitUsage } from "../billing/prices/price.ts";
import { eventBytesMax } from "../config/limits.ts";
import { EventSplitter } from "../dialect/sse/event-stream.ts";
import type { ReplyStream } from "../inference/pipeline/adapter.ts";
import type { NativeMeter } from "../vendor/native.ts";
import { ArraySplitter } from "../dialect/json/array-splitter.ts";
import { madeUnits } from "./models.ts";
import { type AddressEdit, AddressRewriter } from "../dialect/json/addresses.ts";

/** What a stream is read with. */
export interface NativeStreamOptions {
  readonly meter: NativeMeter;
  /** The vendor's addresses, as ours. */
  readonly addresses: readonly AddressEdit[];
  /** Told of each object of the stream. Default: nobody. */
  readonly onObject?: ((json: JsonObject) => void) | undefined;
}

/** What both forms have in common. */
abstract class NativeStream implements ReplyStream<Buffer> {
  finished = false;
  protected readonly options: NativeStreamOptions;
  protected readonly rewriter: AddressRewriter;

  constructor(options: NativeStreamOptions) {
    this.options = options;
    this.rewriter = new AddressRewriter(options.addresses);
  }

  abstract push(pieces: readonly Buffer[]): Buffer;
  abstract end(): Buffer;
  abstract stop(usage: Usage | undefined): Buffer;

  /** A vendor's stream has no event of ours: the connection breaks. */
  errorEvent(): Buffer {
    return nothing;
  }

  get usage(): Usage | undefined {
    return this.options.meter.usage;
  }

  get textBytes(): number {
    return this.options.meter.textBytes;
  }

  get units(): UnitUsage | undefined {
    return madeUnits(this.options.meter);
  }

  /** What a vendor says of its failure is passed on with everything else. */
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

/** Events: only whole ones are passed on, so that a comment of ours can stand between them. */
export class NativeEvents extends NativeStream {
  readonly #splitter = new EventSplitter(eventBytesMax);

  push(pieces: readonly Buffer[]): Buffer {
    const source = this.#splitter.begin(pieces);
    const { meter, onObject } = this.options;
    const canSkim = meter.skim !== undefined && onObject === undefined;
    let mayHaveAddress = !canSkim;
    let at = 0;
    while (at < source.length) {
      if (canSkim) at = meter.skim?.(source, at) ?? at;
      const place = at < source.length ? this.#splitter.next(at) : undefined;
      if (place === undefined) break;
      if (place.dataLines === 1) this.onObject(source, place.dataStart, place.dataEnd);
      at = place.end;
      if (!canSkim || place.dataLines !== 1) continue;
      // What is like an event without an address has none that is rewritten.
      if (this.rewriter.finds(source, place)) mayHaveAddress = true;
      else meter.learn?.(source, place);
    }
    const whole = at === source.length ? source : source.subarray(0, at);
    const passed = mayHaveAddress ? this.rewriter.push(whole) : whole;
    this.#splitter.finish(at, passed);
    return passed;
  }

  /** What is not a whole event is passed on as it is: its reader knows what to make of it. */
  end(): Buffer {
    if (this.finished) return nothing;
    const { rest = nothing } = this.#splitter;
    if (rest.length > 0) this.#onRest(rest);
    this.finished = true;
    return join([this.rewriter.push(rest), this.rewriter.end()]);
  }

  stop(usage: Usage | undefined): Buffer {
    return Buffer.from(`data: ${this.options.meter.stop(usage)}\r\n\r\n`);
  }

  /** The last event, where only its empty line is missing. */
  #onRest(rest: Buffer): void {
    const start = rest.indexOf("data:");
    if (start >= 0) this.onObject(rest, start + "data:".length, rest.length);
  }
}

/** An array that grows: passed on object by object, so that it can be ended between two. */
export class NativeArray extends NativeStream {
  readonly #splitter = new ArraySplitter(eventBytesMax, (bytes, start, end) =>
    this.onObject(bytes, start, end),
  );
  #isBegun = false;

  push(pieces: readonly Buffer[]): Buffer {
    const passed = this.rewriter.push(this.#splitter.push(join(pieces)));
    this.#isBegun ||= passed.length > 0;
    return passed;
  }

  end(): Buffer {
    this.finished = this.#splitter.rest.length === 0;
    return this.rewriter.end();
  }

  stop(usage: Usage | undefined): Buffer {
    return Buffer.from(`${this.#isBegun ? "," : "["}\n${this.options.meter.stop(usage)}]`);
  }
}

/** JSON text as an object; `undefined`: it is none. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}
