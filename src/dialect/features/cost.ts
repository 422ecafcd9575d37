/**
 * Writes what a call costs into the bytes of its reply: the member `cost` of its `usage`, a number
 * in USD (R-TXT-12). All other bytes stay. A reply without usage has no place for it, and passes
 * unchanged.
 */
import { joinBuffers } from "../../core/bytes.ts";
import { eventBytesMax } from "../../core/limits.ts";
import { ObjectScan, openBrace, skipSpace, type Span } from "../../wire/json/scan.ts";
import { Splicer } from "../../wire/json/splice.ts";
import { type EventPlace, EventSplitter } from "../../wire/sse/event-stream.ts";

/** Position of the whole reply's usage in the events of a style. */
export interface UsageEvents {
  /** The `type` of such events. Empty if events have no types, and any may carry it. */
  readonly types: readonly string[];
  /** The member whose member `usage` is. Empty if it is a member of the event itself. */
  readonly within: string;
}

/**
 * A reply that is complete: a JSON object, or all events of a stream. @param cost a decimal number
 * of USD
 */
export function writeReplyCost(body: Buffer, events: UsageEvents, cost: string): Buffer {
  const isObject = body[skipSpace(body, 0, body.length)] === openBrace;
  if (!isObject) return new CostStream(events).write(body, cost);
  const usage = usageOf(body, { start: 0, end: body.length });
  return usage === undefined ? body : writeCost(body, usage, cost);
}

/**
 * Bytes that are held back behind an event with usage at most: text must not wait for an end that
 * is far.
 */
const heldBytesMax = 16 * 1024;

/** A stream on its way to the client. The last event with usage waits until the cost is known. */
export class CostStream {
  readonly #events: UsageEvents;
  /** The last event with usage, and what came after it. */
  #held: Buffer[] = [];
  /** Bytes of {@link #held} behind its first piece. */
  #heldBytes = 0;
  /** Span of the usage in the first of them. */
  #usage: Span = { start: 0, end: 0 };

  constructor(events: UsageEvents) {
    this.#events = events;
  }

  /**
   * Takes whole events, and returns what can go out now.
   *
   * @param cost a decimal number of USD, with the last piece; undefined if more is to come
   */
  write(out: Buffer, cost: string | undefined): Buffer {
    const passed = this.#take(out);
    if (cost !== undefined) passed.push(this.rest(cost));
    return joinBuffers(passed);
  }

  /**
   * Returns the held-back rest; empty if there is nothing. @param cost undefined if unknown: the
   * event then stays unchanged
   */
  rest(cost: string | undefined): Buffer {
    const [first, ...others] = this.#held;
    if (first === undefined) return joinBuffers([]);
    const event = cost === undefined ? first : writeCost(first, this.#usage, cost);
    this.#held = [];
    return joinBuffers([event, ...others]);
  }

  #take(out: Buffer): Buffer[] {
    const found = this.#find(out);
    if (found !== undefined) {
      const { start, usage } = found;
      const passed = [...this.#held, out.subarray(0, start)];
      this.#held = [out.subarray(start)];
      this.#heldBytes = 0;
      this.#usage = { start: usage.start - start, end: usage.end - start };
      return passed;
    }
    if (this.#held.length === 0) return [out];
    this.#held.push(out);
    this.#heldBytes += out.length;
    return this.#heldBytes > heldBytesMax ? [this.rest(undefined)] : [];
  }

  /** The last event with usage: where it begins, and its usage. */
  #find(out: Buffer): { readonly start: number; readonly usage: Span } | undefined {
    if (!out.includes(usageMember)) return undefined;
    const splitter = new EventSplitter(eventBytesMax);
    const source = splitter.begin([out]);
    let found: { readonly start: number; readonly usage: Span } | undefined;
    for (let at = 0; at < source.length; ) {
      const place = splitter.next(at);
      if (place === undefined) break;
      const usage = this.#usageOfEvent(source, place);
      if (usage !== undefined) found = { start: place.start, usage };
      at = place.end;
    }
    return found;
  }

  #usageOfEvent(source: Buffer, { dataLines, dataStart, dataEnd }: EventPlace): Span | undefined {
    if (dataLines !== 1) return undefined;
    const { types, within } = this.#events;
    const event = new ObjectScan().scan(source, dataStart, dataEnd);
    if (types.length > 0 && !types.some((type) => event.is("type", type))) return undefined;
    if (within === "") return usageIn(event);
    const member = event.find(within);
    if (member < 0) return undefined;
    return usageOf(source, { start: event.start(member), end: event.end(member) });
  }
}

const usageMember = '"usage"';

/** The usage of an object; undefined if it has none. */
function usageOf(bytes: Buffer, { start, end }: Span): Span | undefined {
  return usageIn(new ObjectScan().scan(bytes, start, end));
}

function usageIn(scan: ObjectScan): Span | undefined {
  if (scan.kind("usage") !== openBrace) return undefined;
  const member = scan.find("usage");
  return { start: scan.start(member), end: scan.end(member) };
}

/** A `cost` of the vendor's own is what the operator pays: the customer's takes its place. */
function writeCost(bytes: Buffer, { start, end }: Span, cost: string): Buffer {
  const usage = new ObjectScan().scan(bytes, start, end);
  const member = usage.find("cost");
  const splicer = new Splicer();
  if (member >= 0) {
    splicer.replace(usage.start(member), usage.end(member), Buffer.from(cost));
  } else {
    const text = `${usage.size > 0 ? "," : ""}"cost":${cost}`;
    splicer.replace(end - 1, end - 1, Buffer.from(text));
  }
  return splicer.apply(bytes, bytes.length);
}
