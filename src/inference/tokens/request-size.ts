/** How large a request is for a model, told from its bytes: no tokenizer, no parsing. */
import { findMedia } from "../../dialect/json/media.ts";
import { mediaTokens } from "./media-tokens.ts";
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
 * Measures the body of a request to a vendor, whatever its style. The members' names and JSON's signs count
 * as text: they stand for what vendors add to each message.
 *
 * @param body one JSON object, checked before
 * @param pictureTokens the most that a picture takes; default as in media-tokens.ts
 */
export function measureRequest(body: Buffer, pictureTokens?: number): RequestSize {
  let weight = 0;
  let bound = 0;
  let usual = 0;
  let mediaBytes = 0;
  let at = 0;
  for (const media of findMedia(body)) {
    const tokens = mediaTokens(media);
    bound += media.kind === "picture" ? (pictureTokens ?? tokens.bound) : tokens.bound;
    usual += tokens.usual;
    mediaBytes += media.end - media.start;
    weight += textWeight(body, at, media.start);
    at = media.end;
  }
  weight += textWeight(body, at, body.length);
  return { bound: bound + wholeTokens(weight), mediaBytes, mediaTokens: usual };
}
