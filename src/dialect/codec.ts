/**
 * Translation between styles: what a style must offer so that each of the others reaches it through the
 * contract's `Generation`, `Reply` and `GenerateEvent`. All of it is pure.
 *
 * The rule for members (R-TXT-2): a decoder puts what the contract has no field for into `extras`, with its
 * JSON as written; an encoder writes extras of its own style back where `sourceDialect` is its own, and
 * reports every other member that it cannot carry in `dropped`.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { Generation, GenerateEvent, Reply } from "../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { GatewayError } from "../core/errors.ts";
import type { Guard } from "./guard.ts";
import type { Outline } from "./json/outline.ts";

/** The client's side of a style. */
export interface CallerCodec {
  /**
   * Reads a request body in full.
   *
   * @throws GatewayError INVALID_REQUEST, naming the member at fault
   */
  decodeRequest(body: Uint8Array, options: DecodeRequestOptions): Generation;
  /** Writes a whole reply. */
  encodeReply(reply: Reply, options: ReplyOptions): Buffer;
  /** Writes a streamed reply. */
  encodeStream(options: ReplyOptions): StreamEncoder;
  /** What this style calls a field of the contract, by the field's path: `stop` → `stop_sequences`.
   * Fields that it calls the same are left out. */
  readonly memberNames: Readonly<Record<string, string>>;
}

/** The vendor's side of a style. */
export interface VendorCodec {
  /**
   * Writes a request body.
   *
   * @throws GatewayError INVALID_REQUEST where leaving something out would change what is asked for
   */
  encodeRequest(generation: Generation, target: RequestTarget): EncodedRequest;
  /** Reads a whole reply. @throws UnreadableReplyError where it is none of this style */
  decodeReply(body: Buffer): Reply;
  /** Reads a streamed reply. */
  decodeStream(): StreamDecoder;
  /** Checks what a vendor is about to be sent. Absent: the style has nothing that must be refused. */
  readonly guard?: Guard;
  /** Reads the body of a refusal. `undefined`: it is none of this style. */
  decodeError(body: Buffer): VendorError | undefined;
}

/** How a route reads bodies. */
export interface DecodeRequestOptions {
  /** Whether `modelKey` and `prompt` are accepted. */
  readonly platformAliases: boolean;
  /** The body's outline, where it has been read already: finding it takes as long as parsing. Absent: it is
   * made. */
  readonly outline?: Outline;
}

/** A model at a vendor, as a request for it must name it. */
export interface VendorModel {
  readonly model: string;
  /** The member of chat completions that limits a reply there (R-TXT-11). Default: the one that the client sent. */
  readonly limitParameter?: LimitParameter | undefined;
}

/** The two names that chat completions have for the output limit; vendors ignore the one that they do not know. */
export type LimitParameter = "max_tokens" | "max_completion_tokens";

/** Where a request goes. */
export interface RequestTarget {
  /** The vendor's name of the model. */
  readonly model: string;
  /** See {@link VendorModel}. Default `max_completion_tokens`. */
  readonly limitParameter?: LimitParameter | undefined;
  /** Whether the reply is to be streamed. Usage is always asked for. */
  readonly stream: boolean;
  /** The most tokens that the model can produce: for styles that must be told. */
  readonly maxOutputTokens: number;
  /** The style that the request came in; `undefined`: a typed caller. Its extras are dropped elsewhere. */
  readonly sourceDialect: Dialect | undefined;
}

/** A request as a vendor gets it. */
export interface EncodedRequest {
  readonly body: Buffer;
  /** The body's outline, of any depth: for {@link Guard} and for its size. Made once, where it is asked for. */
  readonly outline: () => Outline;
  /** Headers that go with it, by lower-case name, for example `anthropic-version`. */
  readonly headers: Readonly<Record<string, string>>;
  /** What could not be carried, by the contract's path of the field (`top_k`, `tools.strict`), or by the
   * name of the extra. Each once. */
  readonly dropped: readonly string[];
}

/** What a reply needs beside what the vendor said. */
export interface ReplyOptions {
  /** The public name of the model. */
  readonly model: string;
  /** Unique to the call, 32 hexadecimal digits: ids that the style wants and the vendor did not give are
   * made from it. */
  readonly callId: string;
  /** When the call began, in seconds since 1970: where the vendor tells no time. */
  readonly created: number;
  /** An estimate of the input tokens, from 1 on: for a style that tells them first. */
  readonly inputTokens: number;
  /** What was asked for: some styles repeat it, and `include_usage` stands there. */
  readonly generation: Generation;
  /** Told each part or member of the reply that the style cannot carry, by its name. */
  readonly onDropped: (name: string) => void;
}

/** A streamed reply while it is read. Everything it returns is complete; order is kept. */
export interface StreamDecoder {
  /** Takes the next bytes, in pieces. Throws EventTooLongError, and UnreadableReplyError on what is no such stream. */
  push(pieces: readonly Buffer[]): GenerateEvent[];
  /** The vendor has closed the stream. Returns an `end` where the stream was complete and none was
   * returned yet; where it was cut, none. */
  end(): GenerateEvent[];
  /** What the vendor reported so far: where it tells before the end what the whole reply consumed, a stream
   * that is cut there is charged by it. */
  readonly usage: Usage | undefined;
}

/** A streamed reply while it is written. */
export interface StreamEncoder {
  /** The bytes for an event, as text; empty where there are none yet. After an `end`, the terminal event. */
  push(event: GenerateEvent): string;
  /** The event that ends a stream which failed. No terminal event follows. */
  fail(error: GatewayError): string;
}

/** A vendor's refusal. */
export interface VendorError {
  readonly message: string;
  /** The vendor's own code or type. Empty: none. */
  readonly code: string;
}

/** A vendor's reply that cannot be read. `message` is for the log. */
export class UnreadableReplyError extends Error {}

/** The error body that chat completions, responses and platform JSON share:
 * `{error:{message,type,code,param,details?}}`. */
export function errorBody(error: GatewayError): JsonObject {
  const { type, word } = error.meaning;
  const { details } = error;
  const body = { message: error.message, type, code: word, param: error.param ?? null };
  return { error: Object.keys(details).length === 0 ? body : { ...body, details: { ...details } } };
}
