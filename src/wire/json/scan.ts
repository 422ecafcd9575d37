/**
 * Finds the end of JSON strings, validates them, and weighs their text, four bytes at a time in
 * long strings. Base64 images are megabytes of plain text; prose has an escape every few words. One
 * table look-up for two bytes gives their weight and whether one of them ends plain text, so
 * weighing is free: 1 MB of base64 or plain text takes 0.25 ms, as weighing alone did.
 */
import { byteWeights, pairWeights } from "./text-weight.ts";

// Finds the members of a JSON object in its bytes, in one pass and without building values: 1 ns a
// byte; JSON.parse of a 200-byte event takes 1.5 µs. Assumes valid JSON; on anything else the
// result is harmless, never an exception. Clients' bodies are read by outline.ts, which validates
// them.

/** A range of the scanned bytes; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The members of the last scanned object. The scan is reusable. */
export class ObjectScan {
  readonly #keyStarts: number[] = [];
  readonly #keyEnds: number[] = [];
  readonly #valueStarts: number[] = [];
  readonly #valueEnds: number[] = [];
  #bytes: Buffer = Buffer.alloc(0);
  #size = 0;

  /** Scans the object from `start` to `end`; anything else has no members. */
  scan(bytes: Buffer, start: number, end: number): this {
    this.#bytes = bytes;
    this.#size = 0;
    let at = skipSpace(bytes, start, end);
    if (bytes[at] !== openBrace) return this;
    at = skipSpace(bytes, at + 1, end);
    while (at < end && bytes[at] === quote) {
      const keyEnd = endOfString(bytes, at + 1, end);
      const colonAt = skipSpace(bytes, keyEnd + 1, end);
      if (bytes[colonAt] !== colon) break;
      const valueStart = skipSpace(bytes, colonAt + 1, end);
      const valueEnd = endOfValue(bytes, valueStart, end);
      if (valueEnd === valueStart) break;
      this.#keyStarts[this.#size] = at + 1;
      this.#keyEnds[this.#size] = keyEnd;
      this.#valueStarts[this.#size] = valueStart;
      this.#valueEnds[this.#size++] = valueEnd;
      at = skipSpace(bytes, valueEnd, end);
      if (bytes[at] !== comma) break;
      at = skipSpace(bytes, at + 1, end);
    }
    return this;
  }

  /** Number of members. */
  get size(): number {
    return this.#size;
  }

  /** The index of a member, or -1. Of repeated names the last counts, as with JSON.parse. */
  find(name: string): number {
    for (let i = this.#size - 1; i >= 0; i--) {
      if (equalsAscii(this.#bytes, this.#keyStarts[i] ?? 0, this.#keyEnds[i] ?? 0, name)) return i;
    }
    return -1;
  }

  /** Start of a member's value. */
  start(member: number): number {
    return this.#valueStarts[member] ?? 0;
  }

  /** End of a member's value. */
  end(member: number): number {
    return this.#valueEnds[member] ?? 0;
  }

  /** First byte of a member's value; 0 if it is absent. */
  kind(name: string): number {
    const member = this.find(name);
    return member < 0 ? 0 : (this.#bytes[this.start(member)] ?? 0);
  }

  /** Whether a member is this string. */
  is(name: string, word: string): boolean {
    const member = this.find(name);
    if (member < 0 || this.#bytes[this.start(member)] !== quote) return false;
    return equalsAscii(this.#bytes, this.start(member) + 1, this.end(member) - 1, word);
  }

  /** Length of a string member in bytes, as written; 0 if it is no string. */
  stringBytes(name: string): number {
    const member = this.find(name);
    if (member < 0 || this.#bytes[this.start(member)] !== quote) return 0;
    return Math.max(0, this.end(member) - this.start(member) - 2);
  }

  /** A string member as written, without quotes; empty if it is no string. */
  string(name: string): string {
    const size = this.stringBytes(name);
    if (size === 0) return "";
    const start = this.start(this.find(name)) + 1;
    return this.#bytes.toString("latin1", start, start + size);
  }

  /** An integer member; -1 if it is none. */
  count(name: string): number {
    const member = this.find(name);
    if (member < 0) return -1;
    let count = 0;
    const end = this.end(member);
    for (let i = this.start(member); i < end; i++) {
      const digit = (this.#bytes[i] ?? 0) - 0x30;
      if (digit < 0 || digit > 9) return -1;
      count = count * 10 + digit;
    }
    return count;
  }

  /** A member as written; empty if it is absent. */
  json(name: string): string {
    const member = this.find(name);
    return member < 0 ? "" : this.#bytes.toString("utf8", this.start(member), this.end(member));
  }

  /** Parses a member; undefined if it is absent or invalid. */
  value(name: string): unknown {
    const member = this.find(name);
    if (member < 0) return undefined;
    try {
      return JSON.parse(this.#bytes.toString("utf8", this.start(member), this.end(member)));
    } catch {
      return undefined;
    }
  }

  /** Ranges of an array member's elements; none if it is no array. */
  elements(name: string): Span[] {
    const member = this.find(name);
    const elements: Span[] = [];
    if (member < 0 || this.#bytes[this.start(member)] !== openBracket) return elements;
    const end = this.end(member);
    let at = skipSpace(this.#bytes, this.start(member) + 1, end);
    while (at < end) {
      const valueEnd = endOfValue(this.#bytes, at, end);
      if (valueEnd === at) break;
      elements.push({ start: at, end: valueEnd });
      at = skipSpace(this.#bytes, valueEnd, end);
      if (this.#bytes[at] !== comma) break;
      at = skipSpace(this.#bytes, at + 1, end);
    }
    return elements;
  }
}

/**
 * The range of an object in a JSON object.
 *
 * @param path its members and the positions in lists, for example `messages[1].content[0].tool`
 * @returns undefined if the path leads to no object, or a name in it contains a dot or bracket
 */
export function objectAt(bytes: Buffer, path: string): Span | undefined {
  let place: Span = { start: 0, end: bytes.length };
  for (const step of path.split(".")) {
    const [, name = "", index] = /^([^[\]]+)(?:\[(\d+)\])?$/.exec(step) ?? [];
    const scan = new ObjectScan().scan(bytes, place.start, place.end);
    const member = scan.find(name);
    if (member < 0) return undefined;
    const next =
      index === undefined
        ? { start: scan.start(member), end: scan.end(member) }
        : scan.elements(name)[Number(index)];
    if (next === undefined) return undefined;
    place = next;
  }
  return bytes[place.start] === openBrace ? place : undefined;
}

/** Strings up to this length are searched without a native call. */
const shortString = 64;

/** First byte of an object: see {@link ObjectScan.kind}. */
export const openBrace = 0x7b;
/** First byte of a string: see {@link ObjectScan.kind}. */
export const quote = 0x22;
/** First byte of a list: see {@link ObjectScan.kind}. */
export const openBracket = 0x5b;
const closeBrace = 0x7d;
const closeBracket = 0x5d;
const backslash = 0x5c;
const colon = 0x3a;
const comma = 0x2c;

/** The position after the value at `start`. */
function endOfValue(bytes: Buffer, start: number, end: number): number {
  const first = bytes[start];
  if (first === quote) return Math.min(end, endOfString(bytes, start + 1, end) + 1);
  if (first !== openBrace && first !== openBracket) return endOfScalar(bytes, start, end);
  const nestedEnd = endOfNested(bytes, start, end);
  return nestedEnd < 0 ? end : nestedEnd;
}

/** The position after the object or list at `start`; -1: it does not end before `end`. */
function endOfNested(bytes: Buffer, start: number, end: number): number {
  let depth = 0;
  for (let i = start; i < end; i++) {
    const byte = bytes[i];
    if (byte === quote) i = endOfString(bytes, i + 1, end);
    else if (byte === openBrace || byte === openBracket) depth++;
    else if ((byte === closeBrace || byte === closeBracket) && --depth === 0) return i + 1;
  }
  return -1;
}

/**
 * Whether the bytes are one JSON object that ends where they end. An incomplete body, or one with
 * further content, is not.
 */
export function isWholeObject(bytes: Buffer): boolean {
  const { length } = bytes;
  const start = skipSpace(bytes, 0, length);
  if (bytes[start] !== openBrace) return false;
  const end = endOfNested(bytes, start, length);
  return end >= 0 && skipSpace(bytes, end, length) === length;
}

/** The position after a number or word. */
function endOfScalar(bytes: Buffer, start: number, end: number): number {
  let i = start;
  for (; i < end; i++) {
    const byte = bytes[i];
    if (byte === comma || byte === closeBrace || byte === closeBracket || isSpace(byte)) break;
  }
  return i;
}

/** Position of the closing quote; `end` if there is none. */
export function endOfString(bytes: Buffer, from: number, end: number): number {
  let i = from;
  const near = Math.min(end, from + shortString);
  while (i < near) {
    const byte = bytes[i];
    if (byte === quote) return i;
    i += byte === backslash ? 2 : 1;
  }
  while (i < end) {
    const found = bytes.indexOf(quote, i);
    if (found < 0 || found >= end) break;
    let before = found;
    while (before > i && bytes[before - 1] === backslash) before--;
    // With an odd number of backslashes before it, the quote is part of the text.
    if ((found - before) % 2 === 0) return found;
    i = found + 1;
  }
  return end;
}

/** Whether the bytes from `start` to `end` (exclusive) equal an ASCII word. */
export function equalsAscii(bytes: Uint8Array, start: number, end: number, word: string): boolean {
  if (end - start !== word.length) return false;
  for (let i = 0; i < word.length; i++) {
    if (bytes[start + i] !== word.charCodeAt(i)) return false;
  }
  return true;
}

/** The first position from `from` that is no white space; `end` if there is none. */
export function skipSpace(bytes: Uint8Array, from: number, end: number): number {
  let i = from;
  while (i < end && isSpace(bytes[i])) i++;
  return i;
}

/** Whether a byte is JSON white space. */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Why a text is not the expected JSON; the message is a fragment for an error text. */
export class JsonScanError extends Error {
  /** The byte offset at which reading stopped. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.name = "JsonScanError";
    this.offset = offset;
  }
}

/** Valid JSON that exceeds a limit. */
export class JsonLimitError extends JsonScanError {}

/** A text being scanned. */
export interface JsonText {
  readonly bytes: Uint8Array;
  /** The text, with up to three bytes of memory before it, as words. */
  readonly words: Int32Array;
  /** Bytes of the first word before the text. */
  readonly offset: number;
  /** Position of the last `\u` escape; -1 for none. */
  numberedAt: number;
  /** Number of weighed words. */
  weighed: number;
  /** Weight of those words; see {@link weightUpTo}. */
  weight: number;
  /** Known strings still ahead, the next one last. */
  readonly known: KnownText[];
  /** Position of the next one; -1 for none. */
  knownAt: number;
}

/** A string that was validated before. */
export interface KnownText {
  /** Range including quotes; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
  readonly weight: number;
}

/** Prepares a text. @param known validated strings, in order */
export function jsonText(bytes: Uint8Array, known: readonly KnownText[]): JsonText {
  const offset = bytes.byteOffset & 3;
  const start = bytes.byteOffset - offset;
  const words = new Int32Array(bytes.buffer, start, (bytes.length + offset) >>> 2);
  const text: JsonText = {
    bytes,
    words,
    offset,
    numberedAt: -1,
    weighed: 0,
    weight: 0,
    known: known.toReversed(),
    knownAt: known[0]?.start ?? -1,
  };
  if (offset > 0 && words.length > 0) {
    // Bytes before the text are weighed with its first word, so they are subtracted here.
    const before = new Uint8Array(bytes.buffer, start, offset);
    for (const byte of before) text.weight -= byteWeights[byte] as number;
  }
  return text;
}

/**
 * Weight of the text up to `at` (exclusive), in parts of a token. Cheap near the scan's position.
 */
export function weightUpTo(text: JsonText, at: number): number {
  const { bytes, words, offset } = text;
  weighWords(text, Math.min((at + offset) >>> 2, words.length));
  const start = text.weighed * 4 - offset;
  let { weight } = text;
  for (let i = Math.max(start, 0); i < at; i++) weight += byteWeights[bytes[i] as number] as number;
  for (let i = at; i < start; i++) weight -= byteWeights[bytes[i] as number] as number;
  return weight;
}

/** Weighs the unweighed words before `end`. */
function weighWords(text: JsonText, end: number): void {
  if (text.weighed >= end) return;
  const { words } = text;
  let weight = 0;
  for (let at = text.weighed; at < end; at++) {
    const word = words[at] as number;
    weight += (pairWeights[word & 0xffff] as number) + (pairWeights[word >>> 16] as number);
  }
  text.weight += weight;
  text.weighed = end;
}

/**
 * Bit that marks the end of plain text in {@link plainPairs} and {@link stops}; above twice the
 * weight of any pair.
 */
const stop = 0x80;

/** For each byte: whether it ends plain text (a quote, backslash or control character). */
const stops = Uint8Array.from({ length: 0x100 }, (_, byte) =>
  byte < 0x20 || byte === 0x22 || byte === 0x5c ? stop : 0,
);

/** For each byte pair: its weight, and whether one of them ends plain text. */
const plainPairs = pairWeights.map(
  (weight, pair) => weight | (stops[pair & 0xff] as number) | (stops[pair >>> 8] as number),
);

/** Whether the first byte of a word is the lowest. */
const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** Strings of at least this length are scanned in words. */
const longString = isLittleEndian ? 24 : Number.POSITIVE_INFINITY;

/**
 * The position after the closing quote of the string whose text starts at `from`. @throws
 * JsonScanError
 */
export function stringEnd(text: JsonText, from: number): number {
  if (from - 1 === text.knownAt) return knownEnd(text);
  const { bytes } = text;
  const near = Math.min(bytes.length, from + longString);
  let i = from;
  while (i < near) {
    const byte = bytes[i] as number;
    if (byte === 0x22) return i + 1;
    if (byte === 0x5c) i = escapeEnd(text, i);
    else if (byte >= 0x20) i++;
    else throw failure(bytes, i, "unescaped control character");
  }
  return wordsEnd(text, i);
}

/** The position after the next known string. */
function knownEnd(text: JsonText): number {
  const { bytes, words, offset } = text;
  const { start, end, weight } = text.known.pop() as KnownText;
  text.knownAt = text.known.at(-1)?.start ?? -1;
  text.weight = weightUpTo(text, start) + weight;
  text.weighed = Math.min((end + offset) >>> 2, words.length);
  for (let i = text.weighed * 4 - offset; i < end; i++) {
    text.weight -= byteWeights[bytes[i] as number] as number;
  }
  return end;
}

/** The same from within a string; weighs each word once. */
function wordsEnd(text: JsonText, from: number): number {
  const { bytes, words, offset } = text;
  // A local variable is a third faster than `words.length` each time.
  const count = words.length;
  weighWords(text, Math.min((from + offset) >>> 2, count));
  let { weight, weighed } = text;
  let i = from;
  for (;;) {
    let at = (i + offset) >>> 2;
    if (at < count) {
      const first = words[at] as number;
      for (; weighed <= at; weighed++) {
        const word = words[weighed] as number;
        weight += (pairWeights[word & 0xffff] as number) + (pairWeights[word >>> 16] as number);
      }
      // Bytes before `i` in its word do not count: 0x80 ends no text.
      const before = (1 << (((i + offset) & 3) << 3)) - 1;
      let word = (first & ~before) | (0x80808080 & before);
      let pairs = (plainPairs[word & 0xffff] as number) + (plainPairs[word >>> 16] as number);
      while (pairs < stop && ++at < count) {
        word = words[at] as number;
        pairs = (plainPairs[word & 0xffff] as number) + (plainPairs[word >>> 16] as number);
        weight += pairs & (stop - 1);
      }
      weighed = Math.max(weighed, Math.min(at + 1, count));
      i = at * 4 - offset + (at < count ? stopIn(word) : 0);
    }
    const byte = bytes[i] ?? 0;
    if (byte >= 0x20 && byte !== 0x22 && byte !== 0x5c) i++;
    else if (byte === 0x5c) i = escapeEnd(text, i);
    else if (byte === 0x22) {
      text.weight = weight;
      text.weighed = weighed;
      return i + 1;
    } else throw failure(bytes, i, "unescaped control character");
  }
}

/** The byte of a word that ends plain text. */
function stopIn(word: number): number {
  const low = (plainPairs[word & 0xffff] as number) >= stop;
  const pair = low ? word : word >>> 16;
  return (low ? 0 : 2) + ((stops[pair & 0xff] as number) === stop ? 0 : 1);
}

/** The position after the escape at `at`. */
function escapeEnd(text: JsonText, at: number): number {
  const { bytes } = text;
  switch (bytes[at + 1] ?? 0) {
    case 0x22:
    case 0x2f:
    case 0x5c:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return at + 2;
    case 0x75:
      for (let i = at + 2; i < at + 6; i++) if (!isHex(bytes[i])) throw badEscape(bytes, at);
      text.numberedAt = at;
      return at + 6;
    default:
      throw badEscape(bytes, at);
  }
}

function badEscape(bytes: Uint8Array, at: number): JsonScanError {
  return failure(bytes, at, "invalid escape in a string");
}

/** Describes the error at a position; beyond the end of the text it is always truncation. */
export function failure(bytes: Uint8Array, at: number, message: string): JsonScanError {
  return new JsonScanError(at >= bytes.length ? "unexpected end" : message, at);
}

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x41 && byte <= 0x46) ||
    (byte >= 0x61 && byte <= 0x66)
  );
}
