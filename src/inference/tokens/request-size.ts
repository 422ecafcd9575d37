/** How large a request is for a model, told from its bytes: no tokenizer, no parsing. */
import { type BodySize, scanObject } from "../../dialect/json/outline.ts";
import { JsonScanError } from "../../dialect/json/string-scan.ts";
import { textWeight, wholeTokens } from "../../dialect/json/text-weight.ts";
import { mediaTokens } from "./media-tokens.ts";

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
 * @param pictureTokens the most that a picture takes; default as in media-tokens.ts
 */
export function requestSize({ weight, media }: BodySize, pictureTokens?: number): RequestSize {
  let textParts = weight;
  let bound = 0;
  let usual = 0;
  let mediaBytes = 0;
  for (const each of media) {
    const tokens = mediaTokens(each);
    bound += each.kind === "picture" ? (pictureTokens ?? tokens.bound) : tokens.bound;
    usual += tokens.usual;
    mediaBytes += each.end - each.start;
    textParts -= each.weight;
  }
  return { bound: bound + wholeTokens(textParts), mediaBytes, mediaTokens: usual };
}

/** {@link requestSize} of a body that has not been scanned. @param body one JSON object, checked before */
export function measureRequest(body: Buffer, pictureTokens?: number): RequestSize {
  return requestSize(scanSize(body), pictureTokens);
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
