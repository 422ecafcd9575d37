/** The tokens of one call's request: bounded for the hold, counted or estimated where that decides a refusal or a charge. */
import { joinBuffers } from "../../core/bytes.ts";
import type { BodySize } from "../../dialect/json/outline.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { TextRequest } from "../../dialect/dialect.ts";
import type { RequestSummary, PlannedRoute } from "../pipeline/adapter.ts";
import { estimateTokens } from "../metering.ts";
import type { CountQuestion, TokenCounter } from "./counter.ts";
import { type Encoding, familyOf } from "./family.ts";
import {
  mediaTokens,
  requestSize,
  scanSize,
  type TokenRange,
  type RequestSize,
} from "./request-size.ts";

/** Options of {@link RequestTokens}. */
export interface RequestTokensOptions {
  /** The body for the first vendor, in pieces; `undefined`: it is not encoded. */
  readonly body: readonly Buffer[] | undefined;
  /** The client's body, where {@link TextRequest.forVendor} made the pieces from it; else `undefined`. */
  readonly source?: Buffer | undefined;
  /** The size of the body, where it is known. Default: the body is scanned. */
  readonly size?: (() => BodySize) | undefined;
  /** Has {@link TextRequest.sizeFor} where the request is in a wire style. */
  readonly text: RequestSummary & Partial<Pick<TextRequest, "sizeFor">>;
  readonly routes: readonly PlannedRoute[];
  readonly counter: TokenCounter;
}

/** The facts of a call that ended. */
export interface Unreported {
  /** The usage that the vendor reported; `undefined`: none. */
  readonly reported: Usage | undefined;
  /** The vendor's name of the model that answered; `undefined`: none did. */
  readonly vendorModel: string | undefined;
  /** The vendor's complete reply; `undefined`: it was streamed, cut or absent. */
  readonly reply: Buffer | undefined;
}

/** The gateway's own figures. */
export interface Estimate {
  readonly inputTokens: number;
  /** The counted output of a complete reply; `undefined`: not counted. */
  readonly outputTokens?: number | undefined;
}

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
    const bound = this.#measured().bound + storedBound(this.#options.text);
    return Math.min(bound, contextBound(this.#options.routes));
  }

  /** The typical figure, for a charge without a count. */
  get typical(): number {
    const { mediaBytes, mediaTokens: media } = this.#measured();
    return media + estimateTokens(Math.max(0, this.#options.text.bytes - mediaBytes));
  }

  /** As {@link bound}, but with the text counted; `undefined` where the routes do not share one public tokenizer, or the
   * count failed. */
  async countedBound(): Promise<number | undefined> {
    const encodings = new Set(this.#vendorModels.map((name) => familyOf(name)?.encoding));
    const [encoding] = encodings;
    if (encoding === undefined || encodings.size > 1) return undefined;
    return (await this.#counted(encoding))?.bound;
  }

  /** Counts or estimates the usage where the vendor reported none. */
  async estimate({ reported, vendorModel = "", reply }: Unreported): Promise<Estimate> {
    if (reported !== undefined) return { inputTokens: 0 };
    const encoding = familyOf(vendorModel)?.encoding;
    if (encoding === undefined) return { inputTokens: this.typical };
    const [input, outputTokens] = await Promise.all([
      this.#counted(encoding),
      reply && this.#options.counter.count({ encoding, kind: "reply", body: reply }),
    ]);
    return { inputTokens: input?.typical ?? this.typical, outputTokens };
  }

  #measured(): RequestSize {
    if (this.#size !== undefined) return this.#size;
    const { text } = this.#options;
    const body = this.#body();
    // No body is encoded yet: one token per byte is above any text.
    if (body === undefined) return { bound: text.bytes, mediaBytes: 0, mediaTokens: 0 };
    const imageCounts = this.#vendorModels.map((name) => familyOf(name)?.imageTokens ?? 0);
    const imageTokens = Math.max(0, ...imageCounts) || undefined;
    return (this.#size = requestSize(this.#scanned() ?? scanSize(body), imageTokens));
  }

  /** The known size of the vendor's body; `undefined`: it has not been scanned. */
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

  async #counted(encoding: Encoding): Promise<TokenRange | undefined> {
    const { counter, text } = this.#options;
    const body = this.#body();
    if (body === undefined) return undefined;
    const { question, media } = countQuestion(encoding, body);
    const tokens = await counter.count(question);
    if (tokens === undefined) return undefined;
    return {
      bound: tokens + media.bound + storedBound(text),
      typical: tokens + media.typical + estimateTokens(text.storedBytes ?? 0),
    };
  }
}

/** Splits a request into the text to count and the figures of its media. */
export function countQuestion(
  encoding: Encoding,
  body: Buffer,
): { readonly question: CountQuestion; readonly media: TokenRange } {
  const pieces: Buffer[] = [];
  let at = 0;
  let [bound, typical] = [0, 0];
  for (const found of scanSize(body).media) {
    const tokens = mediaTokens(found);
    bound += tokens.bound;
    typical += tokens.typical;
    pieces.push(body.subarray(at, found.start));
    at = found.end;
  }
  pieces.push(body.subarray(at));
  return {
    question: { encoding, kind: "request", body: joinBuffers(pieces) },
    media: { bound, typical },
  };
}

/** The longest input that any of the routes takes; Infinity where one does not say. */
function contextBound(routes: readonly PlannedRoute[]): number {
  let bound = 0;
  for (const { route } of routes) bound = Math.max(bound, route.maxContext ?? Infinity);
  return bound === 0 ? Infinity : bound;
}

/** The bound of a stored conversation: JSON of unknown text, at most a token for two bytes. */
function storedBound({ storedBytes = 0 }: RequestSummary): number {
  return Math.ceil(storedBytes / 2);
}
