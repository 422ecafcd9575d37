/**
 * The interface of codecs. Each style converts to and from the contract's `Generation`, `Reply` and
 * `GenerateEvent`, and so reaches all other styles. Codecs are pure.
 *
 * The rule for members (R-TXT-2): a decoder puts members without a field in the contract into
 * `extras`, with their JSON as written. An encoder writes extras back if `sourceDialect` is its own
 * style, and reports every other member that it cannot carry in `dropped`.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type {
  Generation,
  GenerateEvent,
  Reply,
  ReplyEnd,
} from "../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { VendorQuirks } from "../core/vendor-quirks.ts";
import type { GatewayError } from "../core/errors.ts";
import type { Guard } from "./features/guard.ts";
import type { Outline } from "../wire/json/outline.ts";
import type { UnfinishedEvent } from "../wire/sse/event-stream.ts";

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
  /**
   * Joins whole replies that are the choices of one request. Absent if the style has one choice.
   */
  joinChoices?(this: void, replies: readonly Buffer[]): Buffer;
  /** Writes a streamed reply. */
  encodeStream(options: ReplyOptions): StreamEncoder;
  /** Writes a streamed reply with several choices. Absent if the style has one choice. */
  encodeChoices?(this: void, options: ReplyOptions, choices: number): ChoicesEncoder;
  /**
   * The style's names of contract fields, by field path: `stop` → `stop_sequences`. Fields with
   * equal names are omitted.
   */
  readonly memberNames: Readonly<Record<string, string>>;
}

/** The vendor's side of a style. */
export interface VendorCodec {
  /**
   * Writes a request body.
   *
   * @throws GatewayError INVALID_REQUEST if omitting a member would change the meaning of the
   * request
   */
  encodeRequest(generation: Generation, target: RequestTarget): EncodedRequest;
  /** Reads a whole reply. @throws UnreadableReplyError if it is not of this style */
  decodeReply(body: Buffer): Reply;
  /**
   * Splits a whole reply with several choices into one for each. Absent if the style's vendors make
   * one choice.
   */
  splitChoices?(this: void, body: Buffer): readonly Buffer[];
  /** Reads a streamed reply. */
  decodeStream(): StreamDecoder;
  /**
   * Splits a streamed reply with several choices into a stream for each. Absent for the style's
   * vendors stream one choice.
   */
  splitStream?(this: void, choices: number): StreamSplitter;
  /**
   * Bytes of text that an event adds to a reply of which `knownBytes` have come: what repeats them
   * adds nothing. Rather too many than too few.
   *
   * @param event complete, as the vendor sent it
   */
  addedTextBytes(event: Buffer, knownBytes: number): number;
  /**
   * Returns those stop sequences of another style's request that the style's vendors accept; the
   * gateway applies the others. Absent if they accept all.
   */
  readonly sentStops?: (stop: readonly string[]) => readonly string[];
  /** Checks a body before it is sent to a vendor. Absent if nothing must be refused. */
  readonly guard?: Guard;
  /** Reads an error body; `undefined` if it is not of this style. */
  decodeError(body: Buffer): VendorError | undefined;
}

/** Options of the route for reading bodies. */
export interface DecodeRequestOptions {
  /** Whether `modelKey` and `prompt` are accepted. */
  readonly platformAliases: boolean;
  /**
   * The outline of the body, if known: creating it takes as long as parsing. Absent if it is
   * created.
   */
  readonly outline?: Outline;
}

/** A model at a vendor, as a request for it must name it. */
export interface VendorModel {
  readonly model: string;
  /**
   * The member of chat completions that limits a reply there (R-TXT-11). Default: the one that the
   * client sent.
   */
  readonly limitParameter?: LimitParameter | undefined;
  /** Deviations of the vendor from its documented style. Default: none. */
  readonly quirks?: VendorQuirks | undefined;
}

/** The two names of the output limit in chat completions. Vendors ignore the unknown one. */
export type LimitParameter = "max_tokens" | "max_completion_tokens";

/** The destination of a request. */
export interface RequestTarget {
  /** The vendor's name of the model. */
  readonly model: string;
  /** See {@link VendorModel}. Default `max_completion_tokens`. */
  readonly limitParameter?: LimitParameter | undefined;
  /** See {@link VendorModel}. */
  readonly quirks?: VendorQuirks | undefined;
  /** Whether to stream the reply. Usage is always requested. */
  readonly stream: boolean;
  /** Number of choices to generate: more than 1 only if the codec splits them. Default 1. */
  readonly choices?: number;
  /** The model's output token limit, for styles that require one. */
  readonly maxOutputTokens: number;
  /**
   * The style of the client's request; `undefined` for typed callers. Extras of other styles are
   * dropped.
   */
  readonly sourceDialect: Dialect | undefined;
}

/** A request for a vendor. */
export interface EncodedRequest {
  readonly body: Buffer;
  /** The outline of the body, for {@link Guard} and for its size. Created once, on demand. */
  readonly outline: () => Outline;
  /** Headers to send with it, by lower-case name, for example `anthropic-version`. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Members that could not be carried: the contract's field path (`top_k`, `tools.strict`) or the
   * name of the extra. No duplicates.
   */
  readonly dropped: readonly string[];
}

/** Facts for a reply besides the vendor's data. */
export interface ReplyOptions {
  /** The public name of the model. */
  readonly model: string;
  /**
   * Unique to the call, 32 hexadecimal digits. Source of ids that the style requires and the vendor
   * did not provide.
   */
  readonly callId: string;
  /** Start of the call in seconds since 1970, if the vendor reports no time. */
  readonly created: number;
  /** The time in seconds since 1970. */
  readonly now: () => number;
  /** Estimated input tokens, at least 1, for styles that report them first. */
  readonly inputTokens: number;
  /** The request; some styles repeat it, and it contains `include_usage`. */
  readonly generation: Generation;
  /** Called with the name of each part or member that the style cannot carry. */
  readonly onDropped: (name: string) => void;
}

/** Decodes a streamed reply. Returned events are complete and in order. */
export interface StreamDecoder {
  /**
   * Takes the next bytes. @throws EventTooLongError; UnreadableReplyError if it is no such stream
   */
  push(pieces: readonly Buffer[]): GenerateEvent[];
  /**
   * Called after the vendor closed the stream. Returns an `end` event if the stream was complete
   * and none was returned yet; none if it was cut off.
   */
  end(): GenerateEvent[];
  /**
   * Usage reported so far. A stream that is cut off is charged by it, if the vendor reports totals
   * before the end.
   */
  readonly usage: Usage | undefined;
  /** The event that is not complete. */
  readonly unfinished: UnfinishedEvent;
}

/** Encodes a streamed reply. */
export interface StreamEncoder {
  /**
   * Returns the text for an event; empty if there is none yet. For an `end`, the terminal event.
   */
  push(event: GenerateEvent): string;
  /** The event for a failure. No terminal event follows. */
  fail(error: GatewayError): string;
}

/** Encodes a streamed reply with several choices. */
export interface ChoicesEncoder {
  /** Returns the text for an event of a choice; empty if there is none yet. */
  push(choice: number, event: GenerateEvent): string;
  /** The terminal event. @param end the last choice's, with the usage of all */
  endReply(end: ReplyEnd): string;
  /** The event for a failure. No terminal event follows. */
  fail(error: GatewayError): string;
}

/** Splits a streamed reply by its choices. */
export interface StreamSplitter {
  /** The complete events, for each choice. @throws EventTooLongError */
  push(pieces: readonly Buffer[]): readonly (readonly Buffer[])[];
  /** Like {@link push}, after the vendor closed the stream. */
  end(): readonly (readonly Buffer[])[];
  /** The event that is not complete. */
  readonly unfinished: UnfinishedEvent;
}

/** An error reported by a vendor. */
export interface VendorError {
  readonly message: string;
  /** The vendor's code or type. Empty if there is none. */
  readonly code: string;
}

/** The error body that chat completions, responses and platform JSON share:
 * `{error:{message,type,code,param,details?}}`. */
export function errorBody(error: GatewayError): JsonObject {
  const { type, word } = error.meaning;
  const { details } = error;
  const body = { message: error.message, type, code: word, param: error.param ?? null };
  return { error: Object.keys(details).length === 0 ? body : { ...body, details: { ...details } } };
}
