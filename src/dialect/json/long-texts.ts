/**
 * Long texts cross from one style to another as their bytes. JSON.stringify takes as long as JSON.parse to write a
 * megabyte of prose with its escapes, and longer where it is not all Latin-1; copying what the client wrote takes a
 * tenth of that.
 */
import { joinBuffers } from "../../core/bytes.ts";
import type { JsonRecord } from "./value.ts";
import { longTextBytes, type Outline, scanObject, type TextSpan } from "./outline.ts";
import type { KnownText } from "./string-scan.ts";
import { textWeight } from "./text-weight.ts";

/** The most bytes beside long texts of a body that has them taken out: all of these are looked through. */
const restBytesMax = 256 * 1024;

/** Stands for a long text, in JSON that has no other text with this sign. */
const sign = "\u0000";
const writtenSign = String.raw`\u0000`;

/** The long texts of a request, and how its client wrote them. */
export class LongTexts {
  readonly #written = new Map<string, Buffer>();

  /** @param written its JSON, with quotes */
  add(text: string, written: Buffer): void {
    this.#written.set(text, written);
  }

  /**
   * Writes some JSON.
   *
   * @param write makes the JSON. It must pass each text that is a value through `hide`
   */
  write(write: (hide: (text: string) => string) => string): JsonBody {
    const hidden: Buffer[] = [];
    const json = write((text) => {
      const written = text.length * 3 < longTextBytes ? undefined : this.#written.get(text);
      if (written === undefined) return text;
      hidden.push(written);
      return sign;
    });
    if (hidden.length === 0) return bodyOf([json], []);
    const pieces = json.split(`"${writtenSign}"`);
    // A client's own text or name looks like the sign.
    if (pieces.length !== hidden.length + 1) return bodyOf([write((text) => text)], []);
    return bodyOf(pieces, hidden);
  }
}

/** A body that was written, one JSON object. */
export interface JsonBody {
  readonly body: Buffer;
  /** Its outline, of any depth. Made once, and without going through its long texts again. */
  readonly outline: () => Outline;
}

/** Writes a value. @param texts of which the value may have some */
export function jsonBody(value: object, texts: LongTexts | undefined): JsonBody {
  if (texts === undefined) return bodyOf([JSON.stringify(value)], []);
  return texts.write((hide) =>
    JSON.stringify(value, (_name, each: unknown) => (typeof each === "string" ? hide(each) : each)),
  );
}

/** @param texts what stands between two pieces */
function bodyOf(pieces: readonly string[], texts: readonly Buffer[]): JsonBody {
  const all = pieces.flatMap((piece, at) => [Buffer.from(piece), ...texts.slice(at, at + 1)]);
  const body = joinBuffers(all);
  let outline: Outline | undefined;
  return {
    body,
    outline: () => (outline ??= scanObject(body, Number.POSITIVE_INFINITY, knownIn(all))),
  };
}

/** The long texts among pieces of a body: each second one. Weighed here, by half of what going through them takes. */
function knownIn(pieces: readonly Buffer[]): KnownText[] {
  const known: KnownText[] = [];
  let start = 0;
  for (const [at, piece] of pieces.entries()) {
    const end = start + piece.length;
    if (at % 2 === 1) known.push({ start, end, weight: textWeight(piece) });
    start = end;
  }
  return known;
}

/** A body that was parsed. */
export interface ParsedBody {
  readonly record: JsonRecord;
  /** `undefined`: it has none, or much beside them. */
  readonly texts: LongTexts | undefined;
}

/** Parses a body of which the outline is known. @param spans its long texts, in the order of their places */
export function parseBody(bytes: Buffer, spans: readonly TextSpan[]): ParsedBody {
  const rest = spans.length === 0 ? undefined : restOf(bytes, spans);
  if (rest === undefined) {
    return { record: JSON.parse(bytes.toString("utf8")) as JsonRecord, texts: undefined };
  }
  const texts = new LongTexts();
  const values = spans.map(({ start, end }) => {
    const text = JSON.parse(bytes.toString("utf8", start, end)) as string;
    texts.add(text, bytes.subarray(start, end));
    return text;
  });
  const record = JSON.parse(rest) as Record<string, unknown>;
  putBack(record, values);
  return { record, texts };
}

/** The body with a sign and a number in place of each long text; `undefined`: they are not most of it. */
function restOf(bytes: Buffer, spans: readonly TextSpan[]): string | undefined {
  const longBytes = spans.reduce((sum, { start, end }) => sum + end - start, 0);
  const restBytes = bytes.length - longBytes;
  if (restBytes > restBytesMax || restBytes * 4 > longBytes) return undefined;
  const pieces: string[] = [];
  let at = 0;
  for (const { start, end } of spans) {
    pieces.push(bytes.toString("utf8", at, start));
    at = end;
  }
  pieces.push(bytes.toString("utf8", at));
  // JSON has but one way to write the sign: a body without it has no such text.
  if (pieces.some((piece) => piece.includes(writtenSign))) return undefined;
  return pieces.reduce((text, piece, index) => `${text}"${writtenSign}${index - 1}"${piece}`);
}

/** Puts the texts in the place of their signs. A body nests no deeper than the limit. */
function putBack(holder: Record<string, unknown> | unknown[], texts: readonly string[]): void {
  for (const [name, value] of Object.entries(holder)) {
    if (typeof value === "object" && value !== null) putBack(value as unknown[], texts);
    else if (typeof value === "string" && value.startsWith(sign)) {
      // What JSON.parse has made is the object's own, so that not even `__proto__` is more than a name.
      (holder as Record<string, unknown>)[name] = texts[Number(value.slice(sign.length))];
    }
  }
}

const key = Symbol("long texts");

/** Keeps a request's long texts with what was made of it, for the encoder. */
export function keepTexts<Made extends object>(made: Made, texts: LongTexts | undefined): Made {
  return texts === undefined ? made : Object.assign(made, { [key]: texts });
}

/** What {@link keepTexts} kept; `undefined`: nothing. */
export function textsOf(made: object): LongTexts | undefined {
  return (made as { readonly [key]?: LongTexts })[key];
}
