/**
 * The tokens of a request: bounded and estimated from its bytes, without a tokenizer; counted if
 * exact figures matter.
 */
import { longestInputTokens } from "../core/limits.ts";
import { joinBuffers } from "../core/bytes.ts";
import { type BodySize, scanObject } from "../wire/json/outline.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { TextRequest } from "../dialect/dialect.ts";
import type { PlannedRoute } from "../routing/planned-route.ts";
import { estimateTokens } from "./estimate.ts";
import type { CountQuestion, TokenCounter } from "./counter.ts";
import { type Encoding, familyOf, imageTokensMax, imageTokensOf } from "./family.ts";
import type { Media } from "../wire/json/media.ts";
import { JsonScanError } from "../wire/json/scan.ts";
import { textWeight, wholeTokens } from "../wire/json/text-weight.ts";

/** The length of a request. */
export interface RequestLength {
  /** The size of the request. */
  readonly bytes: number;
  /**
   * The part of `bytes` that the vendor has stored: its model reads them, but the body does not
   * carry them. Default 0.
   */
  readonly storedBytes?: number;
  /**
   * Input tokens that the vendor has stored in a prompt cache: its model reads them, but the body
   * does not carry them. Default 0.
   */
  readonly storedTokens?: number;
}

/** Options of {@link RequestTokens}. */
export interface RequestTokensOptions {
  /** The body for the first vendor, in pieces; undefined if it is not encoded. */
  readonly body: readonly Buffer[] | undefined;
  /**
   * The client's body, if {@link TextRequest.forVendor} made the pieces from it; otherwise
   * undefined.
   */
  readonly source?: Buffer | undefined;
  /** The size of the body, if it is known. By default the body is scanned. */
  readonly size?: (() => BodySize) | undefined;
  /** Has {@link TextRequest.sizeFor} if the request is in a wire style. */
  readonly text: RequestLength & Partial<Pick<TextRequest, "sizeFor">>;
  readonly routes: readonly PlannedRoute[];
  readonly counter: TokenCounter;
}

/** The facts of a call that ended. */
export interface Unreported {
  /** The usage that the vendor reported; undefined if it reported none. */
  readonly reported: Usage | undefined;
  /** The vendor's name of the model that answered; undefined if none did. */
  readonly vendorModel: string | undefined;
  /** The vendor's complete reply; undefined if it was streamed, incomplete or absent. */
  readonly reply: Buffer | undefined;
  /**
   * Whether text of an unknown tokenizer counts as {@link RequestTokens.cautious}: the vendor was
   * stopped because the client disconnected, so it will not report a count.
   */
  readonly isCautious: boolean;
}

/** The gateway's own figures. */
export interface Estimate {
  readonly inputTokens: number;
  /** The counted output of a complete reply; undefined if it was not counted. */
  readonly outputTokens?: number | undefined;
}

/**
 * The part of the byte bound that natural text, code and JSON do not exceed with any of the
 * tokenizers of docs/tokens.md, but for digits and some scripts.
 */
const cautiousShare = 0.75;

/** Computes the tokens of one call's request. */
export class RequestTokens {
  readonly #options: RequestTokensOptions;
  readonly #vendorModels: readonly string[];
  #size: RequestSize | undefined;

  constructor(options: RequestTokensOptions) {
    this.#options = options;
    this.#vendorModels = options.routes.map(({ route }) => route.model);
  }

  /** The upper bound, for the hold. Cheap: without a tokenizer. */
  get bound(): number {
    const { bound, isBounded } = this.#measured();
    return this.#withinContext({ bound, isBounded });
  }

  /**
   * As {@link bound}, but with typical tokens for media without a bound. A limit of tokens per
   * minute reserves this number; otherwise it would refuse each document.
   */
  get expected(): number {
    return this.#withinContext({ bound: this.#measured().expected, isBounded: true });
  }

  /** The longest request, with its reply, that any of the routes accepts; Infinity if unknown. */
  get contextTokens(): number {
    return contextBound(this.#options.routes);
  }

  /**
   * Counts the text of a request that seems longer than the context of any route. Undefined if it
   * seems to fit, or only its vendor can count it.
   *
   * @param counter another counter than that of bills: nothing is held yet, so the account may have
   * no money
   */
  async countedOverlong(counter: TokenCounter): Promise<number | undefined> {
    const encoding = this.#sharedEncoding();
    const counted = encoding && (await this.#counted(encoding, counter));
    return counted && counted.text > this.contextTokens ? counted.typical : undefined;
  }

  /** Whether the request seems longer than any of the routes accepts. */
  get isOverlong(): boolean {
    const { contextTokens } = this;
    return contextTokens !== Infinity && this.typical > contextTokens;
  }

  /** The typical figure, for a charge without a count. */
  get typical(): number {
    const { mediaBytes, mediaTokens: media } = this.#measured();
    const { bytes, storedTokens = 0 } = this.#options.text;
    return media + storedTokens + estimateTokens(Math.max(0, bytes - mediaBytes));
  }

  /**
   * The number for a vendor that was stopped before it could count: nearly every text has at most
   * as many tokens.
   */
  get cautious(): number {
    const { storedTokens = 0 } = this.#options.text;
    return Math.max(this.typical, cautiousTokens(this.#measured()) + storedTokens);
  }

  /**
   * As {@link bound}, but with the text counted. Undefined if the routes do not share one public
   * tokenizer, or the count failed.
   */
  async countedBound(): Promise<number | undefined> {
    const encoding = this.#sharedEncoding();
    const counted = encoding && (await this.#counted(encoding));
    return counted && this.#withinContext(counted);
  }

  /** The public tokenizer of all routes; undefined if they have none in common. */
  #sharedEncoding(): Encoding | undefined {
    const encodings = new Set(this.#vendorModels.map((name) => familyOf(name)?.encoding));
    return encodings.size > 1 ? undefined : [...encodings][0];
  }

  /** Counts or estimates the usage if the vendor reported none. */
  async estimate({ reported, vendorModel = "", reply, isCautious }: Unreported): Promise<Estimate> {
    if (reported !== undefined) return { inputTokens: 0 };
    const encoding = familyOf(vendorModel)?.encoding;
    const unknown = isCautious ? this.cautious : this.typical;
    if (encoding === undefined) return { inputTokens: unknown };
    const [input, outputTokens] = await Promise.all([
      this.#counted(encoding),
      reply && this.#options.counter.count({ encoding, kind: "reply", body: reply }),
    ]);
    return { inputTokens: input?.typical ?? unknown, outputTokens };
  }

  #measured(): RequestSize {
    if (this.#size !== undefined) return this.#size;
    const { text } = this.#options;
    const body = this.#body();
    // No body is encoded yet: one token per byte is above any text.
    if (body === undefined) {
      const { bytes } = text;
      return {
        bound: bytes,
        isBounded: true,
        expected: bytes,
        textBound: 0,
        mediaBytes: 0,
        mediaTokens: 0,
      };
    }
    return (this.#size = requestSize(this.#scanned() ?? scanSize(body), this.#imageTokens));
  }

  /** The most tokens of an image with any of the routes. */
  get #imageTokens(): number {
    return this.#vendorModels.reduce((most, name) => Math.max(most, imageTokensOf(name)), 0);
  }

  /** A bound with the stored conversation, within the longest input that the routes accept. */
  #withinContext({ bound, isBounded }: Bound): number {
    const sum = bound + storedBound(this.#options.text);
    const context = this.contextTokens;
    if (isBounded) return Math.min(sum, context);
    return context === Infinity ? Math.max(sum, longestInputTokens) : context;
  }

  /** The known size of the vendor's body; undefined if it has not been scanned. */
  #scanned(): BodySize | undefined {
    const { source, text, size, routes } = this.#options;
    if (size !== undefined) return size();
    const [first] = routes;
    return source && first !== undefined ? text.sizeFor?.(first.route) : undefined;
  }

  #body(): Buffer | undefined {
    const { body, source } = this.#options;
    return body && (body.length > 1 ? (source ?? joinBuffers(body)) : body[0]);
  }

  async #counted(
    encoding: Encoding,
    counter = this.#options.counter,
  ): Promise<Counted | undefined> {
    const { text } = this.#options;
    const body = this.#body();
    if (body === undefined) return undefined;
    const { question, media } = countQuestion(encoding, body, this.#imageTokens);
    const tokens = await counter.count(question);
    if (tokens === undefined) return undefined;
    return {
      ...media,
      text: tokens,
      bound: tokens + media.bound,
      typical: tokens + media.typical + estimateTokens(text.storedBytes ?? 0),
    };
  }
}

/**
 * Splits a request into the text to count and the figures of its media.
 *
 * @param imageTokens the maximum tokens of an image. The maximum of any model by default
 * @param size size of the body. By default the body is scanned
 */
export function countQuestion(
  encoding: Encoding,
  body: Buffer,
  imageTokens?: number,
  size: BodySize = scanSize(body),
): { readonly question: CountQuestion; readonly media: Bound & TokenRange } {
  const pieces: Buffer[] = [];
  let at = 0;
  let bound = 0;
  let typical = 0;
  let isBounded = true;
  for (const found of size.media) {
    const tokens = mediaTokens(found, imageTokens);
    if (tokens.bound === Infinity) isBounded = false;
    else bound += tokens.bound;
    typical += tokens.typical;
    pieces.push(body.subarray(at, found.start));
    at = found.end;
  }
  pieces.push(body.subarray(at));
  return {
    question: { encoding, kind: "request", body: joinBuffers(pieces) },
    media: { bound, typical, isBounded },
  };
}

/**
 * The longest input that any of the routes accepts; Infinity if the limit of a route is unknown.
 */
function contextBound(routes: readonly PlannedRoute[]): number {
  let bound = 0;
  for (const { route } of routes) bound = Math.max(bound, route.maxContext ?? Infinity);
  return bound === 0 ? Infinity : bound;
}

/**
 * The bound of a conversation that the vendor has stored. It is JSON of unknown text: at most a
 * token for two bytes.
 */
export function storedBound({ storedBytes = 0, storedTokens = 0 }: RequestLength): number {
  return Math.ceil(storedBytes / 2) + storedTokens;
}

/** An upper bound of tokens. */
interface Bound {
  /** The upper bound of the parts that have one. */
  readonly bound: number;
  /**
   * Whether `bound` covers the whole request. False if a medium may fill the whole context of a
   * model.
   */
  readonly isBounded: boolean;
}

/** The figures of a request with counted text. */
interface Counted extends Bound, TokenRange {
  /** The tokens of its text alone. */
  readonly text: number;
}

/** The size of a request. */
export interface RequestSize extends Bound {
  /** As `bound`, with the typical tokens of media that have no bound. */
  readonly expected: number;
  /** The upper bound of its text alone; 0 if the text has not been scanned. */
  readonly textBound: number;
  /** The bytes of media, which are not text. */
  readonly mediaBytes: number;
  /** The typical tokens of the media. */
  readonly mediaTokens: number;
}

/**
 * Computes the size of a scanned body of any style. Member names and JSON punctuation count as
 * text, in place of the tokens that vendors add to each message.
 *
 * @param imageTokens the maximum tokens of an image. The maximum of any model by default
 */
export function requestSize({ weight, media }: BodySize, imageTokens?: number): RequestSize {
  let textParts = weight;
  let bound = 0;
  let unboundedTypical = 0;
  let typical = 0;
  let mediaBytes = 0;
  let isBounded = true;
  for (const each of media) {
    const tokens = mediaTokens(each, imageTokens);
    if (tokens.bound === Infinity) {
      isBounded = false;
      unboundedTypical += tokens.typical;
    } else bound += tokens.bound;
    typical += tokens.typical;
    mediaBytes += each.end - each.start;
    textParts -= each.weight;
  }
  const textBound = wholeTokens(textParts);
  return {
    bound: bound + textBound,
    isBounded,
    expected: bound + unboundedTypical + textBound,
    textBound,
    mediaBytes,
    mediaTokens: typical,
  };
}

/** The bound of a request if the context of the model is unknown. */
export function boundOf({ bound, isBounded }: RequestSize): number {
  return isBounded ? bound : Math.max(bound, longestInputTokens);
}

/**
 * As {@link requestSize}, for a body that has not been scanned.
 *
 * @param body one valid JSON object
 */
export function measureRequest(body: Buffer, imageTokens?: number): RequestSize {
  return requestSize(scanSize(body), imageTokens);
}

/** The implementation of {@link RequestTokens.cautious}. */
export function cautiousTokens(size: RequestSize): number {
  return size.mediaTokens + Math.ceil(size.textBound * cautiousShare);
}

/** Scans a body of any depth. A body that is not a JSON object counts as text. */
export function scanSize(body: Buffer): BodySize {
  try {
    return scanObject(body);
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error;
    return { weight: textWeight(body), media: [] };
  }
}

/**
 * Two token numbers of one medium: the bound for holds, and the typical one for charges without a
 * count.
 */
export interface TokenRange {
  /** The upper bound; Infinity if it may fill the whole context of a model. */
  readonly bound: number;
  /** The typical figure. */
  readonly typical: number;
}

/** An image, typically: 1,024 × 1,024 with GPT-4o in high detail. Bounds: family.ts. */
const imageTypical = 765;

/**
 * A document typically has a token for each 17 to 22 bytes of its base64. It has no bound: a PDF of
 * 2 kB can have pages of compressed text that fill any context. Rejected: counting its pages,
 * because a page can contain any amount of text.
 */
const document = { typicalBytesPerToken: 20, namedTypical: 5_000 };

/**
 * A text in base64: every tokenizer has at most a token for each byte, which are 4/3 bytes of
 * base64.
 */
const textTokensPerByte = 3 / 4;

/**
 * Audio: vendors use 32 tokens a second at most (Gemini; OpenAI 10, Qwen 25). Typical are 8 kbit/s,
 * 1,333 bytes of base64 a second; for a recording given by URL or id, one minute of video. Video,
 * and audio of formats that recording.ts does not read, have no bound: an hour of silence can have
 * a few bytes.
 */
const recording = { tokensPerSecond: 32, typicalBytesPerToken: 500, namedTypical: 16_000 };

/**
 * Sealed reasoning: vendors read its content, which had at most a token for four bytes of base64.
 */
const sealed = { bytesPerToken: 4, typicalBytesPerToken: 6 };

/**
 * The token figures of one medium.
 *
 * @param imageTokens the maximum tokens of an image. The maximum of any model by default
 */
export function mediaTokens(medium: Media, imageTokens = imageTokensMax): TokenRange {
  return figures[medium.kind](medium, imageTokens);
}

type Figure = (medium: Media, imageTokens: number) => TokenRange;

const recordingFigure: Figure = ({ bytes, secondsMax = Infinity }) => {
  const { tokensPerSecond, typicalBytesPerToken, namedTypical } = recording;
  if (bytes === undefined) return { bound: Infinity, typical: namedTypical };
  return rangeOf(secondsMax * tokensPerSecond, bytes / typicalBytesPerToken);
};

const figures: Readonly<Record<Media["kind"], Figure>> = {
  image: (_medium, imageTokens) => ({ bound: imageTokens, typical: imageTypical }),
  document({ bytes, isText = false }) {
    const { typicalBytesPerToken, namedTypical } = document;
    if (bytes === undefined) return { bound: Infinity, typical: namedTypical };
    return rangeOf(isText ? bytes * textTokensPerByte : Infinity, bytes / typicalBytesPerToken);
  },
  sealed({ bytes = 0 }) {
    const { bytesPerToken, typicalBytesPerToken } = sealed;
    return rangeOf(bytes / bytesPerToken, bytes / typicalBytesPerToken);
  },
  audio: recordingFigure,
  video: recordingFigure,
  other: recordingFigure,
};

function rangeOf(bound: number, typical: number): TokenRange {
  const whole = Math.ceil(bound);
  return { bound: whole, typical: Math.min(whole, Math.ceil(typical)) };
}
