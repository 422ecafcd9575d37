/** What a dialect must offer. One file per dialect implements it; index.ts lists them. Pure: no I/O. */
import type { DescMessage, JsonObject, Message } from "@bufbuild/protobuf";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { GatewayError } from "../core/errors.ts";
import type { CallerCodec, VendorCodec, VendorModel } from "./codec.ts";
import type { BodySize, Outline } from "./json/outline.ts";

/** What every dialect offers: its name, its errors and its replies to RPCs that are no text generation. */
export interface Dialect {
  /** The dialect's name in configuration, logs and tables, for example `chat-completions`. */
  readonly word: string;
  /** The response headers that carry the request id, in lower case. */
  readonly requestIdHeaders: readonly string[];
  /** The body of an error answer. @param requestId empty: the answer tells none */
  errorBody(error: GatewayError, requestId: string): JsonObject;
  /**
   * The request fields of an RPC, by their names in the contract, that the parameters of a query set.
   * Absent: the parameters have those names themselves.
   *
   * @throws GatewayError INVALID_REQUEST
   */
  readonly queryFields?: (query: JsonObject) => JsonObject;
  /** The body for an RPC's response message: JSON, or the bytes of it where the message has them. */
  readonly replyBody: (schema: DescMessage, message: Message) => JsonObject | Uint8Array;
}

/** A style that vendors speak. */
export interface VendorDialect extends VendorCodec {
  /** The dialect's name in configuration, logs and tables, for example `gemini`. */
  readonly word: string;
}

/** A style that both clients and vendors speak. */
export interface TextDialect extends Dialect, CallerCodec, VendorCodec {
  /** Request headers that a vendor of this dialect gets to see, in lower case. */
  readonly forwardedHeaders: ReadonlySet<string>;
  /** How clients ask for a count of tokens. Absent: the style has no way. */
  readonly tokenCount?: TokenCount;
  /** Whether every request must say how long its reply may be at most. Absent: it may leave that out. */
  readonly isLimitRequired?: boolean;
  /** What fills a silent stream: ignored by every client. */
  readonly keepAlive: Buffer;
  /**
   * Whether a body may carry wrapped seals of other vendors, see {@link carriesSeals}: it cannot pass as it is.
   * Absent: the style has no place for them, and whatever looks like one is the client's own text.
   */
  readonly carriesSeals?: (body: Uint8Array) => boolean;
  /**
   * Reads what routing and billing need of a request body, leaving the rest as bytes.
   *
   * @throws GatewayError INVALID_REQUEST, naming the member at fault
   */
  readRequest(body: Uint8Array, options: ReadRequestOptions): TextRequest;
  /** Reads usage out of a whole reply and restores the public model name in it. */
  relayReply(body: Buffer, options: RelayOptions): RelayedReply;
  /** Does the same for a stream, piece by piece. */
  relayStream(options: RelayOptions): StreamRelay;
}

/** How a style asks how many tokens a request has. */
export interface TokenCount {
  /** The members that such a request must have, beside `model`. */
  readonly required: readonly string[];
  /** The body that tells a count. */
  readonly body: (inputTokens: number) => JsonObject;
}

/** How the route reads bodies. */
export interface ReadRequestOptions {
  /** Whether the reply is streamed whatever the body says. */
  readonly alwaysStream: boolean;
  /** Whether `modelKey` and `prompt` are accepted. */
  readonly platformAliases: boolean;
}

/** A request body, read as far as needed. */
export interface TextRequest {
  /** The model as the customer named it. */
  readonly model: string;
  /** Whether the reply is streamed. */
  readonly stream: boolean;
  /** Whether the client asked for usage in the stream. */
  readonly wantsUsage: boolean;
  /** The most tokens that one choice may have, as the client limits it; `undefined`: no limit. */
  readonly maxOutputTokens: number | undefined;
  /** How many choices are asked for. At least 1. */
  readonly choices: number;
  /** Whether nobody waits for the reply: it is kept, and asked for later. Absent: the style knows no such thing. */
  readonly isBackground?: boolean;
  /** The length of the body in bytes. */
  readonly bytes: number;
  /** The body's outline: who reads it in full need not check it again. */
  readonly outline: Outline;
  /** The body for a vendor of the same dialect, in pieces to be sent one after the other: another model
   * name, usage asked for, else the same bytes. */
  forVendor(target: VendorModel): readonly Buffer[];
  /** The size of that body, told from the scan of the client's: it is not scanned again. */
  sizeFor(target: VendorModel): BodySize;
}

/** How a reply is passed on. */
export interface RelayOptions {
  /** The name to put where the vendor wrote its own; `undefined`: leave what it wrote. */
  readonly publicModel: string | undefined;
  /** Whether to hide usage that only the gateway asked for. */
  readonly hideUsage: boolean;
  /** How many choices were asked for: all of them must finish. */
  readonly choices: number;
}

/** A whole reply after relaying. */
export interface RelayedReply {
  readonly body: Buffer;
  /** What the vendor reported; `undefined`: nothing usable. */
  readonly usage: Usage | undefined;
  /** Bytes of generated text. */
  readonly textBytes: number;
}

/** A stream while it is relayed. */
export interface StreamRelay {
  /**
   * Takes the next bytes from the vendor, in pieces; returns those for the client: whole events only. Empty
   * where none is complete yet.
   *
   * @throws EventTooLongError
   */
  push(pieces: readonly Buffer[]): Buffer;
  /** The vendor has closed the stream: returns what it left without the end of its event. */
  end(): Buffer;
  /** What the vendor reported so far. */
  readonly usage: Usage | undefined;
  /** Bytes of generated text so far. */
  readonly textBytes: number;
  /** Whether the vendor ended the reply itself: a stream that ends before that was cut. */
  readonly finished: boolean;
  /** Whether its terminal event has passed: nothing can be missing any more. */
  readonly done: boolean;
  /** Whether the vendor reported an error in the stream. */
  readonly failed: boolean;
  /** The event that ends a stream which failed. No terminal event follows it. */
  errorEvent(error: GatewayError): Buffer;
  /**
   * Ends a reply that has not {@link finished}, as one that came to its limit of tokens: what closes all
   * that is open, and the style's last event. Nothing follows it.
   *
   * @param usage what the reply consumed, as its client is told
   */
  stop(usage: Usage | undefined): Buffer;
}
