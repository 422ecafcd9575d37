/** Relays replies. Bytes pass unchanged except for the model name and usage that only the gateway requested. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { eventBytesMax } from "../../config/limits.ts";
import { emptyBuffer } from "../../core/bytes.ts";
import type { GatewayError } from "../../core/errors.ts";
import { RelayedChoices } from "./relay-output.ts";
import { ChunkScan } from "./relay-scan.ts";
import { decodeUsage } from "./usage.ts";
import { errorBody } from "../codec.ts";
import type { RelayedReply, RelayOptions, StreamRelay } from "../dialect.ts";
import { EventTemplate } from "../json/event-template.ts";
import { Splicer } from "../json/splice.ts";
import { parseRecord } from "../json/value.ts";
import { dataLinesOf, type EventPlace, EventSplitter, missingEnd } from "../sse/event-stream.ts";

/** Implements {@link TextDialect.relayReply}. */
export function relayChatReply(body: Buffer, options: RelayOptions): RelayedReply {
  const scan = new ChunkScan();
  scan.scan(body, 0, body.length);
  const splicer = new Splicer();
  restoreModel(body, scan, { splicer, model: modelBytes(options) });
  return {
    body: splicer.apply(body, body.length),
    usage: scan.usageStart < 0 ? undefined : readUsage(body, scan.usageStart, scan.usageEnd),
    textBytes: scan.textBytes,
  };
}

/** Implements {@link TextDialect.relayStream}. */
export class ChatStreamRelay implements StreamRelay {
  usage: Usage | undefined;
  textBytes = 0;
  finished = false;
  done = false;
  failed = false;

  readonly #splitter = new EventSplitter(eventBytesMax);
  readonly #splicer = new Splicer();
  readonly #scan = new ChunkScan();
  /** Template of the last plain event; `undefined` before the first. */
  #template: EventTemplate | undefined;
  readonly #model: Buffer | undefined;
  readonly #hideUsage: boolean;
  /** Number of unfinished choices. */
  #openChoices: number;
  readonly #choices: RelayedChoices;

  constructor(options: RelayOptions) {
    this.#model = modelBytes(options);
    this.#openChoices = options.choices;
    this.#hideUsage = options.hideUsage;
    this.#choices = new RelayedChoices(options);
  }

  get unfinishedBytes(): number {
    return this.#splitter.restBytes;
  }

  push(pieces: readonly Buffer[]): Buffer {
    // Nothing follows an error, in particular no terminal event.
    if (this.failed) return emptyBuffer;
    const source = this.#splitter.begin(pieces);
    let at = 0;
    for (;;) {
      if (at < source.length) at = this.#relayMatching(source, at);
      const place = at < source.length ? this.#splitter.next(at) : undefined;
      if (place === undefined) break;
      this.#onEvent(source, place);
      at = place.end;
      if (this.failed) break;
    }
    const passed = this.#splicer.apply(source, at);
    this.#splitter.finish(at, passed);
    return passed;
  }

  end(): Buffer {
    const missing = this.failed ? undefined : missingEnd(this.#splitter.rest);
    return missing === undefined ? emptyBuffer : this.push([missing]);
  }

  errorEvent(error: GatewayError): Buffer {
    return Buffer.from(`data: ${JSON.stringify(errorBody(error))}\n\n`);
  }

  stop(usage: Usage | undefined): Buffer {
    return Buffer.from(this.#choices.stop(usage));
  }

  /** Relays events that differ from an earlier one in their text only. */
  #relayMatching(source: Buffer, start: number): number {
    if (this.#template === undefined) return start;
    const { end, textBytes, out } = this.#template.pass(source, start);
    this.textBytes += textBytes;
    if (out !== undefined) this.#splicer.replace(start, end, out);
    return end;
  }

  #onEvent(source: Buffer, place: EventPlace): void {
    if (place.dataLines === 0) return;
    if (place.dataLines > 1) return this.#onSplitData(source, place);
    const { dataStart, dataEnd } = place;
    if (source[dataStart] !== 0x7b) {
      if (isDone(source, dataStart, dataEnd)) this.finished = this.done = true;
      return;
    }
    const before = this.#splicer.size;
    this.#onChunk(source, dataStart, dataEnd);
    if (this.#isInjectedUsage(source)) {
      this.#splicer.replace(place.start, place.end);
      return;
    }
    const { usageStart, modelStart } = this.#scan;
    // Replacements go in ascending order.
    if (usageStart < modelStart) this.#hideNullUsage(source);
    restoreModel(source, this.#scan, { splicer: this.#splicer, model: this.#model });
    if (usageStart > modelStart) this.#hideNullUsage(source);
    this.#learn(source, place, before);
  }

  /** Learns the template of an event with one text and nothing else of interest. */
  #learn(source: Buffer, place: EventPlace, before: number): void {
    const { texts, textStart, textEnd, finishes, errorStart, usageStart, usageEnd } = this.#scan;
    const isPlain =
      texts === 1 &&
      finishes === 0 &&
      errorStart < 0 &&
      (usageStart < 0 || isNull(source, usageStart, usageEnd)) &&
      textEnd > textStart;
    if (!isPlain) return;
    const { start, end } = place;
    const text = { start: textStart - start, end: textEnd - start };
    const shift = this.#splicer.shift(before, textStart);
    const out = {
      event: this.#splicer.preview(before, source, place),
      textStart: text.start + shift,
    };
    // A copy, since the next read overwrites the buffer.
    this.#template = new EventTemplate({
      event: Buffer.from(source.subarray(start, end)),
      text,
      out,
    });
  }

  /** Reads one chunk into {@link ChunkScan} and the stream's totals. */
  #onChunk(source: Buffer, start: number, end: number): void {
    const scan = this.#scan;
    scan.scan(source, start, end);
    this.#choices.pass(source, start, end);
    this.textBytes += scan.textBytes;
    this.#openChoices -= scan.finishes;
    if (this.#openChoices <= 0) this.finished = true;
    if (scan.errorStart >= 0 && !isNull(source, scan.errorStart, scan.errorEnd)) this.failed = true;
    if (scan.usageStart >= 0 && !isNull(source, scan.usageStart, scan.usageEnd)) {
      this.usage = readUsage(source, scan.usageStart, scan.usageEnd) ?? this.usage;
    }
  }

  /** Whether the chunk exists only because the gateway requested usage: no choices, only usage. */
  #isInjectedUsage(source: Buffer): boolean {
    const { usageStart, usageEnd, choicesEmpty } = this.#scan;
    return (
      this.#hideUsage && choicesEmpty && usageStart >= 0 && !isNull(source, usageStart, usageEnd)
    );
  }

  #hideNullUsage(source: Buffer): void {
    const { usageStart, usageEnd, usageCutStart, usageCutEnd } = this.#scan;
    if (!this.#hideUsage || usageStart < 0 || !isNull(source, usageStart, usageEnd)) return;
    this.#splicer.replace(usageCutStart, usageCutEnd);
  }

  /** Data in several lines: legal, though no vendor sends it. Joined, read, and written as one line. */
  #onSplitData(source: Buffer, place: EventPlace): void {
    const data = dataLinesOf(source.toString("utf8", place.start, place.end)).join(" ");
    const event = Buffer.from(`data: ${data}\n\n`);
    const inner = {
      start: 0,
      end: event.length,
      dataStart: 6,
      dataEnd: event.length - 2,
      dataLines: 1,
    };
    const outer = this.#splicer.size;
    this.#onEvent(event, inner);
    const edited = this.#splicer.take(outer, event);
    this.#splicer.replace(place.start, place.end, edited);
  }
}

interface ModelEdit {
  readonly splicer: Splicer;
  readonly model: Buffer | undefined;
}

/** Writes the public model name where the vendor wrote a string; null stays. */
function restoreModel(source: Buffer, scan: ChunkScan, { splicer, model }: ModelEdit): void {
  if (model === undefined || scan.modelStart < 0 || source[scan.modelStart] !== 0x22) return;
  splicer.replace(scan.modelStart, scan.modelEnd, model);
}

function modelBytes({ publicModel }: RelayOptions): Buffer | undefined {
  return publicModel === undefined ? undefined : Buffer.from(JSON.stringify(publicModel));
}

function isDone(source: Buffer, start: number, end: number): boolean {
  return source.toString("latin1", start, end).trimEnd() === "[DONE]";
}

function isNull(source: Buffer, start: number, end: number): boolean {
  return end - start === 4 && source[start] === 0x6e;
}

/** The vendor's usage; `undefined` where it is unusable. */
function readUsage(source: Buffer, start: number, end: number): Usage | undefined {
  return decodeUsage(parseRecord(source.toString("utf8", start, end)));
}
