/** The tokens of one call's request: bounded before it is asked, counted or estimated where it decides. */
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

/** What {@link RequestTokens} needs. */
export interface RequestTokensOptions {
  /** The body as the first vendor gets it, in pieces; `undefined`: it is not made yet. */
  readonly body: readonly Buffer[] | undefined;
  /** The client's body, of which the pieces are made by {@link TextRequest.forVendor}; `undefined`: by other means. */
  readonly source?: Buffer | undefined;
  /** What the body has for a model to read, where it is known already. Default: it is scanned. */
  readonly size?: (() => BodySize) | undefined;
  /** With {@link TextRequest.sizeFor} where the request is of a wire style. */
  readonly text: RequestSummary & Partial<Pick<TextRequest, "sizeFor">>;
  readonly routes: readonly PlannedRoute[];
  readonly counter: TokenCounter;
}

/** What is known of a call that has ended. */
export interface Unreported {
  /** What its vendor reported; `undefined`: nothing. */
  readonly reported: Usage | undefined;
  /** The vendor's name of the model that answered; `undefined`: none did. */
  readonly vendorModel: string | undefined;
  /** The vendor's reply, where it came whole; `undefined`: it did not. */
  readonly reply: Buffer | undefined;
}

/** The gateway's own figures. */
export interface Estimate {
  readonly inputTokens: number;
  /** Of a reply that came whole; `undefined`: not counted. */
  readonly outputTokens?: number | undefined;
}

/** One call's request. */
export class RequestTokens {
  readonly #options: RequestTokensOptions;
  readonly #vendorModels: readonly string[];
  #size: RequestSize | undefined;

  constructor(options: RequestTokensOptions) {
    this.#options = options;
    this.#vendorModels = options.routes.map(({ route }) => route.model);
  }

  /** The most that it can be: what is held. Cheap, and of no tokenizer. */
  get bound(): number {
    return this.#measured().bound + storedBound(this.#options.text);
  }

  /** What it usually is: what is charged where nobody counted. */
  get typical(): number {
    const { mediaBytes, mediaTokens: media } = this.#measured();
    return media + estimateTokens(Math.max(0, this.#options.text.bytes - mediaBytes));
  }

  /** The same as {@link bound} with the text counted, where all routes have one public tokenizer and the count
   * succeeds; else `undefined`. */
  async countedBound(): Promise<number | undefined> {
    const encodings = new Set(this.#vendorModels.map((name) => familyOf(name)?.encoding));
    const [encoding] = encodings;
    if (encoding === undefined || encodings.size > 1) return undefined;
    return (await this.#counted(encoding))?.bound;
  }

  /** What is charged for where the vendor reported nothing; nothing is counted where it did. */
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
    // Without a body no vendor can be asked yet: a token a byte is more than any text has.
    if (body === undefined) return { bound: text.bytes, mediaBytes: 0, mediaTokens: 0 };
    const imageCounts = this.#vendorModels.map((name) => familyOf(name)?.imageTokens ?? 0);
    const imageTokens = Math.max(0, ...imageCounts) || undefined;
    return (this.#size = requestSize(this.#scanned() ?? scanSize(body), imageTokens));
  }

  /** `undefined`: what goes to the vendor has not been scanned. */
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

/** What to ask for a request's text, and what its pictures and documents are taken for. */
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

/** What a vendor keeps is a conversation in JSON, of unknown text. */
function storedBound({ storedBytes = 0 }: RequestSummary): number {
  return Math.ceil(storedBytes / 2);
}
