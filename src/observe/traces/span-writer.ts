/**
 * Encodes spans as OTLP protobuf (opentelemetry.proto.trace.v1). Lengths are written after their
 * content, as varints of a fixed width, which protobuf allows: so nothing is measured twice.
 */
import type { SpanContext } from "./ids.ts";
import type { SpanAttributes, SpanRole } from "./traces.ts";

/** A span to encode. */
export interface EncodedSpan extends Pick<SpanContext, "traceId" | "spanId"> {
  readonly name: string;
  readonly role: SpanRole;
  readonly parentId: string | undefined;
  /** The span of the work that caused it. */
  readonly cause: SpanContext | undefined;
  /** Milliseconds since 1970, with their fraction. */
  readonly startMs: number;
  readonly attributes: readonly SpanAttributes[];
  readonly events: readonly SpanEvent[];
}

/** An event of a span. */
export interface SpanEvent {
  readonly name: string;
  readonly timeMs: number;
  readonly attributes: SpanAttributes;
}

/** Numbers of `Span.SpanKind`. */
const kinds: Readonly<Record<SpanRole, number>> = {
  server: 2,
  client: 3,
  producer: 4,
  consumer: 5,
};

/** Tags: the field's number × 8, plus 0 for varints, 1 for 8 bytes, 2 for bytes. */
const tag = {
  // TracesData, ResourceSpans, ScopeSpans, and Resource or InstrumentationScope
  resourceSpans: 0x0a,
  resource: 0x0a,
  scopeSpans: 0x12,
  scope: 0x0a,
  span: 0x12,
  resourceAttribute: 0x0a,
  scopeName: 0x0a,
  // Span
  traceId: 0x0a,
  spanId: 0x12,
  parentId: 0x22,
  name: 0x2a,
  kind: 0x30,
  start: 0x39,
  end: 0x41,
  attribute: 0x4a,
  event: 0x5a,
  link: 0x6a,
  status: 0x7a,
  // Event
  eventTime: 0x09,
  eventName: 0x12,
  eventAttribute: 0x1a,
  // Status
  message: 0x12,
  code: 0x18,
  // KeyValue and AnyValue
  key: 0x0a,
  value: 0x12,
  text: 0x0a,
  bool: 0x10,
  int: 0x18,
  double: 0x21,
} as const;

/** `STATUS_CODE_ERROR` */
const errorCode = 2;

/** Width of a length, in bytes: up to 256 MiB. */
const lengthBytes = 4;

/** Longer texts are cut. */
const textCharsMax = 8_192;

/** Encoded keys. There are as many as names in the code. */
const keys = new Map<string, Buffer>();

/**
 * Encodes spans, one after another, as one request to a collector. The buffer grows, and is used
 * again for the next request: new ones would be collected as garbage, at the cost of every call.
 */
export class SpanWriter {
  #buffer = Buffer.allocUnsafe(64 * 1_024);
  #at = 0;
  readonly #resourceSpans: number;
  readonly #scopeSpans: number;
  /** Where the spans begin. */
  readonly #start: number;
  /** Number of spans. */
  count = 0;

  /** @param resource attributes of the process @param scope the name of the program */
  constructor(resource: SpanAttributes, scope: string) {
    this.#resourceSpans = this.#open(tag.resourceSpans);
    const process = this.#open(tag.resource);
    this.#attributes(tag.resourceAttribute, resource);
    this.#close(process);
    this.#scopeSpans = this.#open(tag.scopeSpans);
    const library = this.#open(tag.scope);
    this.#text(tag.scopeName, scope);
    this.#close(library);
    this.#start = this.#at;
  }

  /** The request with the spans so far. It is overwritten after {@link clear}. */
  get request(): Buffer {
    this.#close(this.#scopeSpans);
    this.#close(this.#resourceSpans);
    return this.#buffer.subarray(0, this.#at);
  }

  /** Removes the spans. */
  clear(): void {
    this.#at = this.#start;
    this.count = 0;
  }

  /** Adds a span that ended at `endMs`. @param failure marks it as failed */
  write(span: EncodedSpan, endMs: number, failure: string | undefined): void {
    this.count++;
    const whole = this.#open(tag.span);
    this.#hex(tag.traceId, span.traceId);
    this.#hex(tag.spanId, span.spanId);
    if (span.parentId !== undefined) this.#hex(tag.parentId, span.parentId);
    this.#text(tag.name, span.name);
    this.#small(tag.kind, kinds[span.role]);
    this.#time(tag.start, span.startMs);
    this.#time(tag.end, Math.max(endMs, span.startMs));
    for (const attributes of span.attributes) this.#attributes(tag.attribute, attributes);
    for (const { name, timeMs, attributes } of span.events) {
      const event = this.#open(tag.event);
      this.#time(tag.eventTime, timeMs);
      this.#text(tag.eventName, name);
      this.#attributes(tag.eventAttribute, attributes);
      this.#close(event);
    }
    if (span.cause !== undefined) {
      const link = this.#open(tag.link);
      this.#hex(tag.traceId, span.cause.traceId);
      this.#hex(tag.spanId, span.cause.spanId);
      this.#close(link);
    }
    if (failure !== undefined) {
      const status = this.#open(tag.status);
      this.#text(tag.message, failure);
      this.#small(tag.code, errorCode);
      this.#close(status);
    }
    this.#close(whole);
  }

  #attributes(each: number, attributes: SpanAttributes): void {
    for (const name in attributes) {
      const value = attributes[name];
      if (value === undefined) continue;
      const pair = this.#open(each);
      this.#key(name);
      const any = this.#open(tag.value);
      if (typeof value === "string") this.#text(tag.text, value);
      else if (typeof value === "boolean") this.#small(tag.bool, value ? 1 : 0);
      else this.#number(value);
      this.#close(any);
      this.#close(pair);
    }
  }

  #key(name: string): void {
    let key = keys.get(name);
    if (key === undefined) {
      // The names in the code are short; those of the environment are cut.
      const text = Buffer.from(name).subarray(0, 127);
      key = Buffer.concat([Buffer.of(tag.key, text.length), text]);
      keys.set(name, key);
    }
    this.#reserve(key.length);
    this.#buffer.set(key, this.#at);
    this.#at += key.length;
  }

  /** Whole numbers up to 2^31 are integers. */
  #number(value: number): void {
    this.#reserve(16);
    if (Number.isInteger(value) && value >= 0 && value < 2 ** 31) {
      this.#buffer[this.#at++] = tag.int;
      this.#varint(value);
      return;
    }
    this.#buffer[this.#at++] = tag.double;
    this.#at = this.#buffer.writeDoubleLE(value, this.#at);
  }

  /** A varint below 128. */
  #small(of: number, value: number): void {
    this.#reserve(2);
    this.#buffer[this.#at++] = of;
    this.#buffer[this.#at++] = value;
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#buffer[this.#at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#buffer[this.#at++] = rest;
  }

  #text(of: number, text: string): void {
    const cut = text.length > textCharsMax ? text.slice(0, textCharsMax) : text;
    this.#reserve(cut.length * 3 + 1 + lengthBytes);
    const start = this.#open(of);
    this.#at += this.#buffer.write(cut, this.#at, "utf8");
    this.#close(start);
  }

  #hex(of: number, id: string): void {
    this.#reserve(20);
    this.#buffer[this.#at++] = of;
    this.#buffer[this.#at++] = id.length / 2;
    this.#at += this.#buffer.write(id, this.#at, "hex");
  }

  /** Nanoseconds since 1970 as 64 bits: they exceed the whole numbers of a double. */
  #time(of: number, ms: number): void {
    this.#reserve(9);
    this.#buffer[this.#at++] = of;
    const whole = Math.floor(ms);
    const high = Math.floor(whole / 65_536) * 1_000_000;
    const nanos = (whole % 65_536) * 1_000_000 + Math.floor((ms - whole) * 1_000_000);
    const low = (high % 65_536) * 65_536 + nanos;
    this.#at = this.#buffer.writeUInt32LE(low % 2 ** 32, this.#at);
    const top = Math.floor(high / 65_536) + Math.floor(low / 2 ** 32);
    this.#at = this.#buffer.writeUInt32LE(top, this.#at);
  }

  /** Begins a field of variable length. @returns where its content begins */
  #open(of: number): number {
    this.#reserve(1 + lengthBytes);
    this.#buffer[this.#at] = of;
    this.#at += 1 + lengthBytes;
    return this.#at;
  }

  #close(start: number): void {
    const length = this.#at - start;
    this.#buffer[start - 4] = (length & 0x7f) | 0x80;
    this.#buffer[start - 3] = ((length >>> 7) & 0x7f) | 0x80;
    this.#buffer[start - 2] = ((length >>> 14) & 0x7f) | 0x80;
    this.#buffer[start - 1] = length >>> 21;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes));
    larger.set(this.#buffer.subarray(0, this.#at));
    this.#buffer = larger;
  }
}
