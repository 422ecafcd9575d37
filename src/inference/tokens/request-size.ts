/** How large a request is for a model, told from its bytes: no tokenizer, no parsing. */
import type { Media } from "../../dialect/json/media.ts";
import { scanObject, type BodySize } from "../../dialect/json/outline.ts";
import { JsonScanError } from "../../dialect/json/string-scan.ts";
import { textWeight, wholeTokens } from "../../dialect/json/text-weight.ts";

/** The size of a request. */
export interface RequestSize {
  /** The most tokens that it takes. */
  readonly bound: number;
  /** Bytes of pictures and the like: they are no text. */
  readonly mediaBytes: number;
  /** The tokens that these usually take. */
  readonly mediaTokens: number;
}

/**
 * The size of a body that has been scanned, whatever its style. The members' names and JSON's signs count as text: they
 * stand for what vendors add to each message.
 *
 * @param imageTokens the most that a picture takes; default as in media-tokens.ts
 */
export function requestSize({ weight, media }: BodySize, imageTokens?: number): RequestSize {
  let textParts = weight;
  let bound = 0;
  let typical = 0;
  let mediaBytes = 0;
  for (const each of media) {
    const tokens = mediaTokens(each);
    bound += each.kind === "image" ? (imageTokens ?? tokens.bound) : tokens.bound;
    typical += tokens.typical;
    mediaBytes += each.end - each.start;
    textParts -= each.weight;
  }
  return { bound: bound + wholeTokens(textParts), mediaBytes, mediaTokens: typical };
}

/** {@link requestSize} of a body that has not been scanned. @param body one JSON object, checked before */
export function measureRequest(body: Buffer, imageTokens?: number): RequestSize {
  return requestSize(scanSize(body), imageTokens);
}

/** Scans a body of any depth. What is no JSON object is text. */
export function scanSize(body: Buffer): BodySize {
  try {
    return scanObject(body, Number.POSITIVE_INFINITY);
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error;
    return { weight: textWeight(body), media: [] };
  }
}

/* What a picture, a document or a recording in a request is taken for, in tokens. Their base64 is no text. */

/** Two figures for one thing: what is held for it, and what it is charged for where nobody counted. */
export interface TokenRange {
  /** The most. */
  readonly bound: number;
  /** The usual. */
  readonly typical: number;
}

/**
 * A picture. At most: 2,576 pixels of Claude are 4,784 tokens; 8 tiles of GPT-4o 1,445; Gemini stays below 2,300.
 * gpt-4o-mini is dearer by far: families.ts. Usually: 1,024 × 1,024 of GPT-4o in high detail.
 */
const image: TokenRange = { bound: 5_000, typical: 765 };

/**
 * A PDF: 1,500 to 3,000 tokens a page, and nobody knows its pages without reading it: a token for each four
 * bytes of base64, between these limits (100 pages is where vendors begin to refuse). Usually 17 to 22 bytes.
 */
const document = { bytesPerToken: 4, min: 5_000, max: 250_000, typicalBytesPerToken: 20 };

/** A document that is named, not sent. */
const namedDocument: TokenRange = { bound: 50_000, typical: 5_000 };

/** Sound and film: 32 tokens a second with Gemini, 10 with OpenAI; 8 kbit/s are 1,333 bytes of base64 a second. */
const recording = { bytesPerToken: 32, min: 1_000, typicalBytesPerToken: 500 };

/** A recording that is named, not sent: Gemini's film of three minutes; of one minute. */
const namedRecording: TokenRange = { bound: 50_000, typical: 16_000 };

/** Sealed reasoning: vendors read what is inside, which was at most a token for four bytes of base64. */
const sealed = { bytesPerToken: 4, typicalBytesPerToken: 6 };

/** What a thing is taken for. */
export function mediaTokens({ kind, bytes }: Media): TokenRange {
  return figures[kind](bytes);
}

const figures: Readonly<Record<Media["kind"], (bytes: number | undefined) => TokenRange>> = {
  image: () => image,
  document(bytes) {
    if (bytes === undefined) return namedDocument;
    const { bytesPerToken, min, max, typicalBytesPerToken } = document;
    const bound = Math.min(max, Math.max(min, Math.ceil(bytes / bytesPerToken)));
    return { bound, typical: Math.min(bound, Math.ceil(bytes / typicalBytesPerToken)) };
  },
  sealed(bytes = 0) {
    const { bytesPerToken, typicalBytesPerToken } = sealed;
    return {
      bound: Math.ceil(bytes / bytesPerToken),
      typical: Math.ceil(bytes / typicalBytesPerToken),
    };
  },
  other(bytes) {
    if (bytes === undefined) return namedRecording;
    const { bytesPerToken, min, typicalBytesPerToken } = recording;
    const bound = Math.max(min, Math.ceil(bytes / bytesPerToken));
    return { bound, typical: Math.ceil(bytes / typicalBytesPerToken) };
  },
};
