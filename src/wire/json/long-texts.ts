/**
 * Copies long texts between styles as bytes. JSON.stringify needs as long as JSON.parse for a
 * megabyte of prose with escapes, and longer if it is not Latin-1; copying the client's bytes takes
 * a tenth of that.
 */
import { joinBuffers } from "../../core/bytes.ts";
import { writePieces } from "./json-tree.ts";
import type { JsonRecord } from "./value.ts";
import { longTextBytes, type Outline, scanObject, type TextSpan } from "./outline.ts";
import type { KnownText } from "./scan.ts";
import { textWeight } from "./text-weight.ts";

/** Maximum number of bytes in addition to long texts; all of these are searched. */
const restBytesMax = 256 * 1024;

/** Placeholder of a long text. No other text of the JSON contains this character. */
const sign = "\u0000";
const writtenSign = String.raw`\u0000`;

/** The long texts of a request, with their bytes as the client wrote them. */
export class LongTexts {
  readonly #written = new Map<string, Buffer>();

  /** @param written its JSON, including quotes */
  add(text: string, written: Buffer): void {
    this.#written.set(text, written);
  }

  /** The JSON of a long text; `undefined` for any other text. */
  find(text: string): Buffer | undefined {
    return text.length * 3 < longTextBytes ? undefined : this.#written.get(text);
  }
}

/** A written body, one JSON object. */
export interface JsonBody {
  readonly body: Buffer;
  /** Its outline. Created once, without scanning the long texts again. */
  readonly outline: () => Outline;
}

/**
 * Writes a value.
 *
 * @param value may contain JsonText
 * @param texts long texts that the value may contain
 */
export function jsonBody(value: object, texts: LongTexts | undefined): JsonBody {
  const written = writePieces(value, texts && ((text) => texts.find(text)));
  // Only long texts are pieces of bytes.
  const known: KnownText[] = [];
  const pieces: Buffer[] = [];
  let start = 0;
  for (const each of written) {
    const piece = typeof each === "string" ? Buffer.from(each) : each;
    const end = start + piece.length;
    // Weighed here at half the cost of scanning them.
    if (typeof each !== "string") known.push({ start, end, weight: textWeight(piece) });
    pieces.push(piece);
    start = end;
  }
  const body = joinBuffers(pieces);
  let outline: Outline | undefined;
  return { body, outline: () => (outline ??= scanObject(body, {}, known)) };
}

/** A parsed body. */
export interface ParsedBody {
  readonly record: JsonRecord;
  /** Undefined if there are none, or they are the smaller part. */
  readonly texts: LongTexts | undefined;
}

/** Parses a body with a known outline. @param spans its long texts, in order */
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

/** The body with numbered placeholders for long texts; undefined if these are not most of it. */
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
  // JSON has only one spelling of the placeholder, so a body without it contains no such text.
  if (pieces.some((piece) => piece.includes(writtenSign))) return undefined;
  return pieces.reduce((text, piece, index) => `${text}"${writtenSign}${index - 1}"${piece}`);
}

/** Replaces placeholders by their texts. Depth is limited by the body's own limit. */
function putBack(holder: Record<string, unknown> | unknown[], texts: readonly string[]): void {
  for (const [name, value] of Object.entries(holder)) {
    if (typeof value === "object" && value !== null) putBack(value as unknown[], texts);
    else if (typeof value === "string" && value.startsWith(sign)) {
      // JSON.parse creates own properties, so even `__proto__` is an ordinary name.
      (holder as Record<string, unknown>)[name] = texts[Number(value.slice(sign.length))];
    }
  }
}

const key = Symbol("long texts");

/** Stores a request's long texts with the decoded request, for the encoder. */
export function keepTexts<Made extends object>(made: Made, texts: LongTexts | undefined): Made {
  return texts === undefined ? made : Object.assign(made, { [key]: texts });
}

/** The stored long texts; `undefined` for none. */
export function textsOf(made: object): LongTexts | undefined {
  return (made as { readonly [key]?: LongTexts })[key];
}
