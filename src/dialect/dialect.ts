/**
 * The interface of dialects. Each implements it in a separate folder; index.ts lists them. Pure: no
 * I/O.
 */
import type { DescMessage, JsonObject, Message } from "@bufbuild/protobuf";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { GatewayError } from "../core/errors.ts";
import type { Betas } from "./features/betas.ts";
import type { ToolCalls } from "./features/billed-features.ts";
import type { CallerCodec, VendorCodec, VendorModel } from "./codec.ts";
import type { UsageEvents } from "./features/cost.ts";
import type { BodySize, Outline } from "../wire/json/outline.ts";
import type { Edit } from "../wire/json/splice.ts";
import type { UnfinishedEvent } from "../wire/sse/event-stream.ts";

/** Common to all dialects: name, error bodies, and replies to RPCs other than text generation. */
export interface Dialect {
  /** The dialect's name in configuration, logs and tables, for example `chat-completions`. */
  readonly word: string;
  /** The response headers that carry the request id, in lower case. */
  readonly requestIdHeaders: readonly string[];
  /** The body of an error response. @param requestId empty if the response carries none */
  errorBody(error: GatewayError, requestId: string): JsonObject;
  /**
   * Converts query parameters to request fields, by their names in the contract. Absent if the
   * names are the same.
   *
   * @throws GatewayError INVALID_REQUEST
   */
  readonly queryFields?: (query: JsonObject) => JsonObject;
  /**
   * The body for the response message of an RPC: JSON, or the message's own bytes if it has them.
   */
  readonly replyBody: (schema: DescMessage, message: Message) => JsonObject | Uint8Array;
}

/**
 * Headers that name a conversation: of Claude Code, codex and other agents, in lower case. The
 * first one counts.
 */
export const conversationHeaders: readonly string[] = [
  "x-claude-code-session-id",
  "session_id",
  "conversation_id",
  "x-session-id",
];

/** Request headers that routing reads, in every style; they go to no vendor. */
export const routingHeaders: readonly string[] = ["x-uas-route", ...conversationHeaders];

/** A style for requests to vendors. */
export interface VendorDialect extends VendorCodec {
  /** The dialect's name in configuration, logs and tables, for example `gemini`. */
  readonly word: string;
}

/** A style for both clients and vendors. */
export interface TextDialect extends Dialect, CallerCodec, VendorCodec {
  /** Request headers that are forwarded to vendors of this dialect, in lower case. */
  readonly forwardedHeaders: ReadonlySet<string>;
  /** The betas that a header switches on. */
  readonly betas: Betas;
  /** The events of a stream that carry its usage. */
  readonly usageEvents: UsageEvents;
  /** Requests for a token count. Absent if the style has none. */
  readonly tokenCount?: TokenCount;
  /** Whether the maximum reply length is a required member. Absent means optional. */
  readonly isLimitRequired?: boolean;
  /** Filler for silent streams; all clients ignore it. */
  readonly keepAlive: Buffer;
  /**
   * Whether a body may contain wrapped seals of other vendors, see {@link carriesSeals}, so that it
   * cannot be relayed unchanged. Absent if the style has no place for them: similar text then
   * belongs to the client.
   */
  readonly carriesSeals?: (body: Uint8Array) => boolean;
  /**
   * Reads the facts that routing and billing need from a request body, and leaves the rest as
   * bytes.
   *
   * @throws GatewayError INVALID_REQUEST, naming the member at fault
   */
  readRequest(body: Uint8Array, options: ReadRequestOptions): TextRequest;
  /**
   * A vendor's refusal as the client gets it: its bytes, with the strings that the style promises.
   * Undefined if the body is no error of the style.
   *
   * @param error the gateway's error for the refusal
   */
  relayError(body: Buffer, error: GatewayError): Buffer | undefined;
  /** Reads the usage of a whole reply, and restores the public model name in it. */
  relayReply(body: Buffer, options: RelayOptions): RelayedReply;
  /** Relays a stream the same way, piece by piece. */
  relayStream(options: RelayOptions): StreamRelay;
}

/** A style's request for a token count. */
export interface TokenCount {
  /** Required members of the request, besides `model`. */
  readonly required: readonly string[];
  /** The reply body for a count. */
  readonly body: (inputTokens: number) => JsonObject;
}

/** Options of the route for reading bodies. */
export interface ReadRequestOptions {
  /** Whether the reply is streamed whatever the body says. */
  readonly alwaysStream: boolean;
  /** Whether `modelKey` and `prompt` are accepted. */
  readonly platformAliases: boolean;
}

/** A partially read request body. */
export interface TextRequest {
  /** The model as the customer named it. */
  readonly model: string;
  /** Whether the reply is streamed. */
  readonly stream: boolean;
  /** Whether the client requested usage in the stream. */
  readonly wantsUsage: boolean;
  /** The client's limit on tokens per choice; `undefined` for none. */
  readonly maxOutputTokens: number | undefined;
  /** Number of choices, at least 1. */
  readonly choices: number;
  /** Whether the reply is stored and fetched later. Absent if the style has no background mode. */
  readonly isBackground?: boolean;
  /** The length of the body in bytes. */
  readonly bytes: number;
  /** The outline of the body, so that a full read need not check it again. */
  readonly outline: Outline;
  /**
   * Returns the body for a vendor of the same dialect, in pieces to send in order. The model and
   * the output limit get the vendor's names, and usage is requested; all other bytes stay.
   *
   * @param more further edits. Default: none
   */
  forVendor(target: VendorModel, more?: readonly Edit[]): readonly Buffer[];
  /** The size of that body, derived from the scan of the client's body. */
  sizeFor(target: VendorModel): BodySize;
}

/** Options for relaying a reply. */
export interface RelayOptions {
  /** The model name to show in place of the vendor's; `undefined` keeps the vendor's. */
  readonly publicModel: string | undefined;
  /** Whether to hide usage that only the gateway asked for. */
  readonly hideUsage: boolean;
  /** Number of requested choices; the stream is complete when all have finished. */
  readonly choices: number;
}

/** A relayed whole reply. */
export interface RelayedReply {
  readonly body: Buffer;
  /** The vendor's usage; undefined if it is missing or unusable. */
  readonly usage: Usage | undefined;
  /**
   * The gateway's estimate, if the reply reports it in place of the vendor's usage. Default: it
   * does not.
   */
  readonly estimated?: Usage | undefined;
  /** Bytes of generated text. */
  readonly textBytes: number;
  /** Billable units that the usage does not report. Default: none. */
  readonly units?: ReplyUnits | undefined;
}

/**
 * Billable units of a reply other than tokens: calls of the vendor's tools, images, characters and
 * seconds.
 */
export interface ReplyUnits extends ToolCalls {
  readonly images?: number | undefined;
  readonly characters?: number | undefined;
  readonly seconds?: number | undefined;
}

/** A stream being relayed. */
export interface StreamRelay {
  /**
   * Takes bytes from the vendor and returns bytes for the client, in whole events. Empty if no
   * event is complete yet.
   *
   * @throws EventTooLongError
   */
  push(pieces: readonly Buffer[]): Buffer;
  /**
   * The same, up to the event that may take {@link textBytes} beyond `textBytesMax`. What begins
   * there is in {@link unread}: it comes with the next call. Absent if the stream cannot be stopped
   * between two events.
   */
  pushUntil?(pieces: readonly Buffer[], textBytesMax: number): Buffer;
  /** Bytes that the last {@link pushUntil} left. Absent if there are none. */
  readonly unread?: Buffer | undefined;
  /** Called after the vendor closed the stream; returns a last event without its end. */
  end(): Buffer;
  /** Usage reported so far. */
  readonly usage: Usage | undefined;
  /**
   * The gateway's estimate, if the reply's end reports it in place of the vendor's usage. Default:
   * it does not.
   */
  readonly estimated?: Usage | undefined;
  /** Bytes of generated text so far. */
  readonly textBytes: number;
  /**
   * Of that text, the bytes that came after {@link usage}, which does not count them. Default 0.
   */
  readonly uncountedTextBytes?: number;
  /** Number of events with that text. Absent if not counted. */
  readonly textPieces?: number;
  /** Billable units so far that the usage does not report. Default: none. */
  readonly units?: ReplyUnits | undefined;
  /** The event that is not complete, which stays in memory. */
  readonly unfinished: UnfinishedEvent;
  /** Whether the vendor finished the reply; a stream that ends earlier was cut off. */
  readonly finished: boolean;
  /** Whether the terminal event was relayed, so that nothing can be missing. */
  readonly done: boolean;
  /** Whether the vendor reported an error in the stream. */
  readonly failed: boolean;
  /**
   * Whether the gateway finished the reply before its vendor, which must be stopped. Default false.
   */
  readonly isCutShort?: boolean;
  /** The event for a failure. No terminal event follows it. */
  errorEvent(error: GatewayError): Buffer;
  /**
   * Ends an unfinished reply as if it had reached its token limit: closes everything open and
   * writes the style's last event.
   *
   * @param usage the usage to report to the client
   */
  stop(usage: Usage | undefined): Buffer;
}
