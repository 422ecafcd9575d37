/**
 * The caller's side of a call: bytes in a wire style, the contract's own messages, or a vendor's
 * native form.
 */
import type { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/prices/cost.ts";
import type { ImageForm, ModelConfig, PriceConfig } from "../../config/config.ts";
import type { CompleteText, UsageOfReply } from "../../dialect/translate.ts";
import type { ConversationId } from "../../routing/affinity.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { PreparedCall } from "../../routing/prepared-call.ts";
import type { RoutingWishes } from "../../routing/preferences.ts";
import type { RequestLength } from "../../tokens/request-tokens.ts";
import type { UnfinishedEvent } from "../../wire/sse/event-stream.ts";
import type { GatewayError } from "../../core/errors.ts";
import type { OperationName } from "../../provider/vendor.ts";
import type { VendorReply } from "../../provider/reply.ts";
import { type Delivered, meter, type Metered } from "./metering.ts";

/** The facts of a request that routing and billing use. */
export interface RequestSummary extends RequestLength {
  /** The public name of the model. */
  readonly model: string;
  /** Whether the reply is streamed. */
  readonly stream: boolean;
  /** Output token limit of one choice; `undefined` means no limit. */
  readonly maxOutputTokens: number | undefined;
  /** Number of choices requested, at least 1. */
  readonly choices: number;
  /** Billable units other than tokens. Default: none. */
  readonly units?: UnitUsage;
  /**
   * Maximum number of chargeable images, if the vendor bills megapixels and the request leaves the
   * size open. Default: the images of `units`.
   */
  readonly maxImages?: number | undefined;
  /** The form of the requested images. Default: the vendor chooses. */
  readonly imageForm?: ImageForm;
}

/** A piece of a reply for the caller: bytes or events. Empty means nothing yet. */
export type Chunk = { readonly length: number };

/** A complete reply for the caller. */
export interface WholeReply<Out> {
  readonly body: Out;
  readonly usage: Usage | undefined;
  /**
   * The gateway's estimate, if the reply reports it in place of the vendor's usage: it is what is
   * charged. Default: the reply does not.
   */
  readonly estimated?: Usage | undefined;
  readonly textBytes: number;
  /** Billable units other than tokens. Default: none. */
  readonly units?: UnitUsage | undefined;
  /** The form of its images, as far as it reports that. */
  readonly imageForm?: ImageForm | undefined;
  /** Whether it is an error, or empty, and passes as the vendor sent it. Default false. */
  readonly isFailed?: boolean;
}

/** Converts a streamed reply for the caller. `StreamRelay` is the same for bytes. */
export interface ReplyStream<Out> {
  push(pieces: readonly Buffer[]): Out;
  /** See {@link StreamRelay.pushUntil}. */
  pushUntil?(pieces: readonly Buffer[], textBytesMax: number): Out;
  readonly unread?: Buffer | undefined;
  end(): Out;
  /** The event that ends a failed stream; empty if the failure is thrown instead. */
  errorEvent(error: GatewayError): Out;
  /** Ends an unfinished reply as if it had reached its token limit. */
  stop(usage: Usage | undefined): Out;
  readonly usage: Usage | undefined;
  /** See {@link WholeReply.estimated}. */
  readonly estimated?: Usage | undefined;
  readonly textBytes: number;
  /** See {@link StreamRelay.uncountedTextBytes}. */
  readonly uncountedTextBytes?: number;
  /** See {@link StreamRelay.textPieces}. */
  readonly textPieces?: number;
  /** The event that is not complete, which stays in memory. */
  readonly unfinished: UnfinishedEvent;
  /** Billable units other than tokens. Default: none. */
  readonly units?: UnitUsage | undefined;
  /** See {@link WholeReply.imageForm}. */
  readonly imageForm?: ImageForm | undefined;
  readonly finished: boolean;
  readonly done: boolean;
  readonly failed: boolean;
  /** See {@link StreamRelay.isCutShort}. */
  readonly isCutShort?: boolean;
}

/**
 * Writes what a call costs into its reply, for a caller that asked for it (R-TXT-12). Costs are
 * decimal numbers of USD.
 */
export interface CostWriter<Out> {
  /** A complete reply with its cost. */
  whole(body: Out, cost: string): Out;
  /**
   * The next piece of a stream; returns what can go out now. @param cost with the last piece;
   * undefined if more comes
   */
  write(out: Out, cost: string | undefined): Out;
  /**
   * Returns the held-back rest; empty if there is nothing. @param cost undefined if unknown: the
   * reply then keeps its own
   */
  rest(cost: string | undefined): Out;
}

/** The reply at the time its head is sent. */
export interface ReplyHead {
  /** The vendor's headers, by lower-case name. */
  readonly upstream: Readonly<Record<string, string>>;
  /** Length of a complete reply in bytes; `undefined` for a streamed one. */
  readonly length: number | undefined;
  /** Members of the request that the vendor's style could not carry. */
  readonly dropped: readonly string[];
  /** Whether the vendor answered in the caller's own style. */
  readonly isRelayed: boolean;
}

/** A vendor's refusal of a request as invalid. */
export interface VendorRefusal {
  readonly status: number;
  readonly body: Buffer;
  /** The error for the caller, if the body is not passed on. */
  readonly error: GatewayError;
}

/** A route and its answer. */
export interface AnsweredBy {
  readonly planned: PlannedRoute;
  readonly answer: VendorReply;
}

/** How a repeated request is recognised, and how its reply is kept. */
export interface Repetition<Out> {
  /** Parts of the request that are equal in a repetition, besides its path. */
  readonly identity: ReadonlyArray<string | Uint8Array>;
  /** A copy of a piece of the reply. */
  toBytes(out: Out): Uint8Array;
  /** The complete reply, from the bytes of all its pieces. */
  fromBytes(bytes: Buffer): Out;
}

/** The repetition of a request whose reply is bytes. */
export function repetitionOfBytes(
  ...identity: ReadonlyArray<string | Uint8Array>
): Repetition<Buffer> {
  return { identity, toBytes: (out) => Buffer.from(out), fromBytes: (bytes) => bytes };
}

/** A caller's request before it is read. */
export abstract class CallAdapter<Out extends Chunk> {
  /** The path for the call log. */
  abstract readonly path: string;
  /** Whether the request may name a model that generates no text. Default false. */
  readonly acceptsAnyModel: boolean = false;
  /** The HTTP method, for traces. Default `POST`. */
  get method(): string {
    return "POST";
  }

  /** The path without names of models or objects, for traces. Default: {@link path}. */
  get route(): string {
    return this.path;
  }

  /**
   * Used if the request has an idempotency key. Default: a repeated request is a new call.
   */
  get repetition(): Repetition<Out> | undefined {
    return undefined;
  }

  /** Reads the request. @throws GatewayError INVALID_REQUEST */
  abstract read(): ReadRequest<Out>;

  /**
   * The model of a request that {@link read} refused, for its call record; empty if none can be
   * read.
   */
  abstract modelName(): string;
}

/** A request whose references are resolved. */
export interface Recalled<Out extends Chunk> {
  readonly request: ReadRequest<Out>;
  /** The routes that can serve it. */
  readonly routes: readonly PlannedRoute[];
}

const noWishes: RoutingWishes = {};

/** Whether the headers of a reply announce events. */
export function isEventType(headers: VendorReply["headers"]): boolean {
  return (headers["content-type"] ?? "").startsWith("text/event-stream");
}

/**
 * A request that has been read: it is encoded for vendors, and their replies are converted for the
 * caller.
 */
export abstract class ReadRequest<Out extends Chunk> {
  abstract readonly text: RequestSummary;

  /**
   * Whether the request names something that its vendor stores or fetches, so that its input has
   * any length up to the model's context. Default true.
   */
  get refersToStored(): boolean {
    return true;
  }
  /**
   * Whether the request asks for data about its own text, such as log probabilities. An empty reply
   * then has a value. Default false.
   */
  get readsPrompt(): boolean {
    return false;
  }
  /** The preferred dialect for vendors; undefined for any. */
  abstract readonly dialect: Dialect | undefined;
  /** The operation of the vendor; undefined means text generation. */
  readonly operation: OperationName | undefined = undefined;
  /** The query to pass on, without its question mark. */
  readonly query: string = "";
  /**
   * Whether every request of the style must name an output limit. The limit then says nothing about
   * the expected length. Default false.
   */
  readonly isLimitRequired: boolean = false;
  /**
   * Whether the vendor completes and bills the reply even if the client disconnects. The reply is
   * then read to its end, unless the vendor's `on_disconnect` is `abort`. Default false.
   */
  readonly isReadToEnd: boolean = false;
  /** Members of the reply that the caller's style could not carry. */
  readonly droppedOfReply: readonly string[] = [];
  /**
   * Whether the request may be sent again after a failure: not if a job may be running (R-ERR-5).
   * Default true.
   */
  readonly isRepeatable: boolean = true;
  /** Routing preferences of the request. Default: none. */
  readonly wishes: RoutingWishes = noWishes;
  /** Public name of the model that answered, if it is not the requested one. */
  answeredBy: string | undefined;
  /**
   * Returns the part of a usage that is charged, if the vendor's figures cannot be true (R-MON-15);
   * else the same usage. Set before a reply is read. Default: any figure can be true.
   */
  plausible: (usage: Usage, text: Pick<Delivered, "textBytes" | "units">) => Usage = (usage) =>
    usage;

  /** The usage of a complete text. @param inputTokens the size of the request, for an estimate */
  protected usageOf(text: CompleteText, inputTokens: number): UsageOfReply {
    const { usage: due, isCharged } = this.meter({ ...text, inputTokens, isComplete: true });
    return { due, told: due !== undefined && isCharged ? this.plausible(due, text) : due };
  }

  /** The conversation that the request belongs to; undefined if none is recognised. */
  conversation(): ConversationId | undefined {
    return undefined;
  }

  /** Checks that the model is of the right kind. @throws GatewayError INVALID_REQUEST */
  checkModel(_model: ModelConfig): void {}

  /** The routes that can serve the request; undefined for all whose vendors speak a dialect. */
  plan(): readonly PlannedRoute[] | undefined {
    return undefined;
  }

  /**
   * Resolves references to stored responses, items or reasoning; undefined if the request has none.
   */
  recall(_routes: readonly PlannedRoute[]): Promise<Recalled<Out>> | undefined {
    return undefined;
  }

  /**
   * Encodes the request for a vendor. @throws GatewayError INVALID_REQUEST if the vendor's style
   * cannot carry it
   */
  abstract prepare(model: ModelConfig, planned: PlannedRoute): PreparedCall;

  /** Whether a reply is streamed. */
  isStreamed({ headers }: VendorReply): boolean {
    return isEventType(headers);
  }

  /** Whether {@link whole} also reads a complete reply that came as events. Default false. */
  readonly readsWholeEvents: boolean = false;

  /**
   * Whether the reply was written anew although its vendor speaks the caller's style: it came whole
   * and a stream was requested, or the other way round. Default false.
   */
  readonly isRewritten: boolean = false;

  /** Reads a complete reply. @throws UnreadableReplyError */
  abstract whole(body: Buffer, planned: PlannedRoute, reply: VendorReply): WholeReply<Out>;

  /**
   * Reads a streamed reply.
   *
   * @param price what the call is charged by; absent if the reader of the stream charges nothing
   */
  abstract stream(planned: PlannedRoute, reply: VendorReply, price?: PriceConfig): ReplyStream<Out>;

  /**
   * Bytes of text that an event adds to a streamed reply, before the stream reads it. Rather too
   * many than too few.
   *
   * @param event complete, as the vendor sent it
   */
  addedTextBytes(event: Buffer, { planned, answer }: AnsweredBy, _knownBytes: number): number {
    const alike = this.stream(planned, answer);
    alike.push([event]);
    return alike.textBytes;
  }

  /** The headers for the caller, by lower-case name. */
  abstract headers(reply: ReplyHead): Record<string, string>;

  /**
   * Converts a vendor's refusal of the request as invalid: a body to pass on, or the error to
   * report.
   */
  abstract refusal(refused: VendorRefusal, planned: PlannedRoute): Out | GatewayError;

  /**
   * Stores what a later request may refer to, before the caller gets the end of the reply;
   * undefined if there is nothing.
   *
   * @param last the last piece for the caller
   */
  keep(_last: Out, _planned: PlannedRoute): Promise<void> | undefined {
    return undefined;
  }

  /**
   * Returns a writer that puts the cost into the reply; undefined if the caller did not request it.
   */
  costWriter(): CostWriter<Out> | undefined {
    return undefined;
  }

  /** Returns the usage to charge. */
  meter(delivered: Delivered): Metered {
    return meter(delivered);
  }
}
