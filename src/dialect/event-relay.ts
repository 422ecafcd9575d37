/**
 * Base of the relays of styles with named events: bytes pass unchanged except for the spans that a
 * style replaces.
 */
import { eventBytesMax } from "../core/limits.ts";
import { emptyBuffer } from "../core/bytes.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { GatewayError } from "../core/errors.ts";
import type { RelayOptions, ReplyUnits, StreamRelay } from "./dialect.ts";
import { HeldInputs } from "./held-inputs.ts";
import { ToolCallCount } from "./tools/tool-calls.ts";
import {
  type EventPlace,
  EventSplitter,
  missingEnd,
  type UnfinishedEvent,
} from "../wire/sse/event-stream.ts";
import { EventTemplate } from "../wire/json/event-template.ts";
import { ObjectScan, quote } from "../wire/json/scan.ts";
import { Splicer } from "../wire/json/splice.ts";

/** See {@link StreamRelay}. A style reads events in `onData` and sets the public members. */
export abstract class EventRelay implements StreamRelay {
  usage: Usage | undefined;
  textBytes = 0;
  textPieces = 0;
  finished = false;
  done = false;
  failed = false;
  unread: Buffer | undefined;
  /** Counts the tools that usage does not report. */
  protected readonly tools = new ToolCallCount();
  /** The inputs of its calls. */
  protected readonly inputs = new HeldInputs();

  readonly #splitter = new EventSplitter(eventBytesMax);
  readonly #splicer = new Splicer();
  readonly #model: Buffer | undefined;
  /** The text that had come with {@link usage}. */
  #countedTextBytes = 0;
  #source: Buffer = emptyBuffer;
  #place: EventPlace | undefined;
  /** Offset in the source of the bytes that `onData` receives. */
  #shift = 0;
  /** The form of the last event of which only a text counts; undefined if none has come. */
  #template: EventTemplate | undefined;

  get units(): ReplyUnits | undefined {
    return this.tools.calls;
  }

  get uncountedTextBytes(): number {
    return this.usage === undefined ? 0 : Math.max(this.textBytes - this.#countedTextBytes, 0);
  }

  constructor(options: RelayOptions) {
    this.#model = modelJson(options);
  }

  /** Reads the JSON of one event, from `start` to `end`. */
  protected abstract onData(bytes: Buffer, start: number, end: number): void;

  /** The style's event for a failure. */
  protected abstract failureEvent(error: GatewayError): Buffer;

  /** The events that end the reply as at its token limit. */
  protected abstract stopEvents(usage: Usage | undefined): Buffer;

  errorEvent(error: GatewayError): Buffer {
    return Buffer.concat([this.inputs.release(), this.failureEvent(error)]);
  }

  stop(usage: Usage | undefined): Buffer {
    return Buffer.concat([this.inputs.release(), this.stopEvents(usage)]);
  }

  get unfinished(): UnfinishedEvent {
    return this.#splitter;
  }

  push(pieces: readonly Buffer[]): Buffer {
    return this.pushUntil(pieces, Number.POSITIVE_INFINITY);
  }

  pushUntil(pieces: readonly Buffer[], textBytesMax: number): Buffer {
    const source = this.#splitter.begin(pieces);
    this.#source = source;
    let at = 0;
    this.unread = undefined;
    while (at < source.length) {
      // Nothing overtakes an event that waits.
      if (!this.inputs.isActive) at = this.#passAlike(source, at, textBytesMax - this.textBytes);
      const place = at < source.length ? this.#splitter.next(at) : undefined;
      if (place === undefined) break;
      if (place.end - at > textBytesMax - this.textBytes) {
        this.unread = this.#splitter.leave(at);
        break;
      }
      this.#place = place;
      const { textBytes, usage } = this;
      const before = this.#splicer.size;
      this.inputs.beginEvent();
      if (place.dataLines === 1) this.onData(source, place.dataStart, place.dataEnd);
      else if (place.dataLines > 1) this.#onSplitData(source, place);
      if (this.textBytes > textBytes) this.textPieces += 1;
      if (this.usage !== usage) this.#countedTextBytes = this.textBytes;
      at = place.end;
      if (this.inputs.isActive) this.#hold(source, place, before);
    }
    this.#source = emptyBuffer;
    const passed = this.#splicer.apply(source, at);
    this.#splitter.finish(at, passed);
    return passed;
  }

  end(): Buffer {
    const missing = missingEnd(this.#splitter.rest);
    const last = missing === undefined ? emptyBuffer : this.push([missing]);
    return Buffer.concat([last, this.inputs.release()]);
  }

  /**
   * Relays an event that waits, or that decides about those that do. @param before number of edits
   * before it
   */
  #hold(source: Buffer, place: EventPlace, before: number): void {
    if (this.failed || this.done) this.inputs.endAll();
    const event = this.#splicer.preview(before, source, place);
    this.#splicer.clear(before);
    this.#splicer.replace(place.start, place.end, this.inputs.pass(event));
  }

  /** Returns the name on the event's `event` line; empty if it has none. */
  protected eventName(): string {
    const { start = 0, end = 0 } = this.#place ?? {};
    const text = this.#source.toString("latin1", start, end);
    return /^(?:\xef\xbb\xbf)?event: ?(.*)$/m.exec(text)?.[1] ?? "";
  }

  /**
   * Records that the event changes only {@link textBytes}, by the length of its single text from
   * `start` to `end` (exclusive). Events that differ from it only in that text are then skipped.
   */
  protected learn(start: number, end: number): void {
    if (this.#place === undefined || this.#place.dataLines !== 1) return;
    const first = this.#place.start;
    const event = Buffer.from(this.#source.subarray(first, this.#place.end));
    this.#template = new EventTemplate({ event, text: { start: start - first, end: end - first } });
  }

  #passAlike(source: Buffer, start: number, textBytesMax: number): number {
    if (this.#template === undefined || this.failed) return start;
    const { end, events, textBytes } = this.#template.pass(source, start, textBytesMax);
    this.textPieces += events;
    this.textBytes += textBytes;
    return end;
  }

  /** Takes the whole event out. */
  protected hideEvent(): void {
    if (this.#place !== undefined) this.#splicer.replace(this.#place.start, this.#place.end);
  }

  /** Puts other bytes in the place of the whole event. */
  protected replaceEvent(out: Buffer): void {
    if (this.#place !== undefined) this.#splicer.replace(this.#place.start, this.#place.end, out);
  }

  /** Puts other JSON in the place of the event's, from `start` to `end`. */
  protected replaceData(start: number, end: number, json: Buffer): void {
    // Data of several lines becomes one.
    if (this.#place?.dataLines !== 1) return this.replaceEvent(asEvent(json));
    this.#splicer.replace(start, end, json);
  }

  /** Puts the public name if the vendor wrote a string; a null stays. */
  protected restoreModel(scan: ObjectScan): void {
    if (this.#model === undefined || scan.kind("model") !== quote) return;
    const member = scan.find("model");
    this.#splicer.replace(
      scan.start(member) + this.#shift,
      scan.end(member) + this.#shift,
      this.#model,
    );
  }

  /**
   * The event's JSON with the public model name in its object `name`; the same buffer if nothing
   * changes.
   */
  protected restoredModel(json: Buffer, name: string): Buffer {
    const scan = new ObjectScan().scan(json, 0, json.length);
    const at = scan.find(name);
    if (this.#model === undefined || at < 0) return json;
    scan.scan(json, scan.start(at), scan.end(at));
    if (scan.kind("model") !== quote) return json;
    const model = scan.find("model");
    const splicer = new Splicer();
    splicer.replace(scan.start(model), scan.end(model), this.#model);
    return splicer.apply(json, json.length);
  }

  /**
   * Data over several lines: legal, though no vendor does it. Read with everything else blanked
   * out, so that places stay the same: between two lines of JSON, white space means nothing.
   */
  #onSplitData(source: Buffer, { start, end }: EventPlace): void {
    const text = source.toString("latin1", start, end);
    const blanked = text.replaceAll(/(^(?:\xef\xbb\xbf)?data: ?)?(.*)(\r\n|\n|\r|$)/gm, blankLine);
    this.#shift = start;
    this.onData(Buffer.from(blanked, "latin1"), 0, blanked.length);
    this.#shift = 0;
  }
}

function asEvent(json: Buffer): Buffer {
  return Buffer.from(`data: ${json.toString("utf8").trim()}\n\n`);
}

/** A line with nothing but the value of its `data` left. */
function blankLine(line: string, data: string | undefined, value: string): string {
  if (data === undefined) return " ".repeat(line.length);
  return (" ".repeat(data.length) + value).padEnd(line.length);
}

/** Returns the public model name as JSON; undefined means the vendor's name stays. */
export function modelJson({ publicModel }: RelayOptions): Buffer | undefined {
  return publicModel === undefined ? undefined : Buffer.from(JSON.stringify(publicModel));
}

/** Puts the public model name into a whole reply. */
export function restoreReplyModel(body: Buffer, scan: ObjectScan, options: RelayOptions): Buffer {
  const model = modelJson(options);
  if (model === undefined || scan.kind("model") !== quote) return body;
  const member = scan.find("model");
  const splicer = new Splicer();
  splicer.replace(scan.start(member), scan.end(member), model);
  return splicer.apply(body, body.length);
}
