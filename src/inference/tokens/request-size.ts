/** Computes how many tokens a request can take, from its bytes: without tokenizer and without parsing. */
import type { Media } from "../../dialect/json/media.ts";
import { scanObject, type BodySize } from "../../dialect/json/outline.ts";
import { JsonScanError } from "../../dialect/json/string-scan.ts";
import { textWeight, wholeTokens } from "../../dialect/json/text-weight.ts";

/** The size of a request. */
export interface RequestSize {
  /** The upper bound of its tokens. */
  readonly bound: number;
  /** The bytes of media, which are not text. */
  readonly mediaBytes: number;
  /** The typical tokens of the media. */
  readonly mediaTokens: number;
}

/**
 * Computes the size of a scanned body of any style. Member names and JSON punctuation count as text: they stand for the
 * tokens that vendors add to each message.
 *
 * @param imageTokens the maximum tokens of an image. Default: the bound of `image` below
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

/** As {@link requestSize}, for a body that has not been scanned. @param body one valid JSON object */
export function measureRequest(body: Buffer, imageTokens?: number): RequestSize {
  return requestSize(scanSize(body), imageTokens);
}

/** Scans a body of any depth. A body that is not a JSON object counts as text. */
export function scanSize(body: Buffer): BodySize {
  try {
    return scanObject(body, Number.POSITIVE_INFINITY);
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error;
    return { weight: textWeight(body), media: [] };
  }
}

/** Two token figures of one medium: the bound for holds, and the typical one for charges without a count. */
export interface TokenRange {
  /** The upper bound. */
  readonly bound: number;
  /** The typical figure. */
  readonly typical: number;
}

/**
 * An image. Bound: 2,576 pixels take 4,784 tokens with Claude, 8 tiles 1,445 with GPT-4o, and less than 2,300 with
 * Gemini. gpt-4o-mini takes far more: family.ts. Typical: 1,024 × 1,024 with GPT-4o in high detail.
 */
const image: TokenRange = { bound: 5_000, typical: 765 };

/**
 * A PDF takes 1,500 to 3,000 tokens a page, and its pages are unknown without parsing it. So the bound is a token for
 * each four bytes of base64, within these limits (vendors refuse more than about 100 pages). Typical are 17 to 22 bytes.
 */
const document = { bytesPerToken: 4, min: 5_000, max: 250_000, typicalBytesPerToken: 20 };

/** A document given by URL or id: the most pages that vendors read, 1,000 of 258 tokens with Gemini, 100 of 2,600 with
 * OpenAI and Anthropic. */
const namedDocument: TokenRange = { bound: 260_000, typical: 5_000 };

/** Audio and video: 32 tokens a second with Gemini, 10 with OpenAI; 8 kbit/s are 1,333 bytes of base64 a second. */
const recording = { bytesPerToken: 32, min: 1_000, typicalBytesPerToken: 500 };

/** A recording given by URL or id. Its length is unknown, so the bound is the longest input of Gemini, which reads an hour
 * of video. Typical is one minute of it. */
const namedRecording: TokenRange = { bound: 1_048_576, typical: 16_000 };

/** Sealed reasoning: vendors read its content, which had at most a token for four bytes of base64. */
const sealed = { bytesPerToken: 4, typicalBytesPerToken: 6 };

/** The token figures of one medium. */
export function mediaTokens({ kind, bytes }: Media): TokenRange {
  return figures[kind](bytes);
}

type Figure = (bytes: number | undefined) => TokenRange;

const recordingFigure: Figure = (bytes) => {
  if (bytes === undefined) return namedRecording;
  const { bytesPerToken, min, typicalBytesPerToken } = recording;
  const bound = Math.max(min, Math.ceil(bytes / bytesPerToken));
  return { bound, typical: Math.ceil(bytes / typicalBytesPerToken) };
};

const figures: Readonly<Record<Media["kind"], Figure>> = {
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
  audio: recordingFigure,
  video: recordingFigure,
  other: recordingFigure,
};
