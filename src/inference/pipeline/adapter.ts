/** The caller's side of a call: bytes in a wire style, the contract's own messages, or a vendor's own form. */
import type { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/prices/price.ts";
import type { CancelSignal } from "../../core/cancel-signal.ts";
import type { ModelConfig, RouteConfig } from "../../config/config.ts";
import type { BodySize } from "../../dialect/json/outline.ts";
import type { GatewayError } from "../../core/errors.ts";
import type { OperationName, Vendor, VendorReply } from "../../vendor/vendor.ts";
import { type Delivered, meter, type Metered } from "../metering.ts";

/** What routing and billing need of a request. */
export interface AskedText {
  /** The model as the customer named it. */
  readonly model: string;
  /** Whether the reply is streamed. */
  readonly stream: boolean;
  /** The most tokens that one choice may have; `undefined`: no limit. */
  readonly maxOutputTokens: number | undefined;
  /** How many choices are asked for. At least 1. */
  readonly choices: number;
  /** The size of the request in bytes. */
  readonly bytes: number;
  /** How many of them are kept by the vendor and read by its model, but are not in the body. Default 0. */
  readonly keptBytes?: number;
  /** Billable units other than tokens. Default: none. */
  readonly units?: UnitUsage;
}

/** A route, and the style in which its vendor is asked. */
export interface PlannedRoute {
  readonly route: RouteConfig;
  /** The dialect that its vendor is asked in; `undefined`: it has none, or is not configured. */
  readonly dialect: Dialect | undefined;
  /** How long the reply is read on after the client has disconnected, to learn its usage, in milliseconds (R-MON-11):
   * 0 stops the vendor at once, Infinity reads to the end. */
  readonly readOnMs: number;
  /** Its vendor's configured address. Absent: it has none. */
  readonly vendorUrl?: string;
}

/** What a vendor is sent. */
export interface PreparedCall {
  readonly headers: Readonly<Record<string, string>>;
  /** In pieces, to be sent one after the other. */
  readonly body: readonly Buffer[];
  /** The whole body in one piece, where `body` differs from it by a few members only: it can be measured without
   * joining the pieces. Default: they are joined. */
  readonly source?: Buffer;
  /** What the body has for a model to read, where it was scanned as it was made. Absent: it is scanned once more. */
  readonly size?: () => BodySize;
  /** Members that the vendor's style cannot carry, in the caller's words. */
  readonly dropped: readonly string[];
  /** Sends it. Absent: the vendor is asked in the planned dialect. @throws HttpFailure */
  readonly send?: (vendor: Vendor, signal: CancelSignal) => Promise<VendorReply>;
}

/** What goes to a caller at once: bytes, or events. Empty: nothing yet. */
export type Chunk = { readonly length: number };

/** A complete reply, as it goes to the caller. */
export interface WholeReply<Out> {
  readonly body: Out;
  readonly usage: Usage | undefined;
  readonly textBytes: number;
  /** Billable units other than tokens. Default: none. */
  readonly units?: UnitUsage | undefined;
}

/** A streamed reply on its way to the caller: what `StreamRelay` is for bytes. */
export interface ReplyStream<Out> {
  push(pieces: readonly Buffer[]): Out;
  end(): Out;
  /** The event that ends a stream which failed; empty: the failure itself is thrown. */
  errorEvent(error: GatewayError): Out;
  /** Ends an unfinished reply as one that reached its token limit. */
  stop(usage: Usage | undefined): Out;
  readonly usage: Usage | undefined;
  readonly textBytes: number;
  /** Billable units other than tokens. Default: none. */
  readonly units?: UnitUsage | undefined;
  readonly finished: boolean;
  readonly done: boolean;
  readonly failed: boolean;
}

/** Writes what a call costs into its reply, for a caller that asked for it (R-TXT-12). Costs are decimal numbers of USD. */
export interface CostWriter<Out> {
  /** A complete reply with its cost. */
  whole(body: Out, cost: string): Out;
  /** The next piece of a stream; returns what can go out now. @param cost with the last piece; `undefined`: more comes */
  write(out: Out, cost: string | undefined): Out;
  /** What is still held back; empty: nothing. @param cost `undefined`: not known, it stays as it is */
  rest(cost: string | undefined): Out;
}

/** What is known of a reply when its head goes out. */
export interface ReplyHead {
  /** The vendor's headers, by lower-case name. */
  readonly upstream: Readonly<Record<string, string>>;
  /** The length of a complete reply in bytes; `undefined`: it is streamed. */
  readonly length: number | undefined;
  /** Members of the request that the vendor's style could not carry. */
  readonly dropped: readonly string[];
  /** Whether the vendor was asked in the caller's own style. */
  readonly isRelayed: boolean;
}

/** A vendor's refusal of a request as invalid. */
export interface Refused {
  readonly status: number;
  readonly body: Buffer;
  /** What it means. */
  readonly error: GatewayError;
}

/** A request of a caller that has not been read yet. */
export abstract class CallAdapter<Out extends Chunk> {
  /** For the call log. */
  abstract readonly path: string;
  /** Whether models that make no text can be asked, too. */
  readonly takesAnyModel: boolean = false;

  /** Reads the request. @throws GatewayError INVALID_REQUEST */
  abstract read(): ReadRequest<Out>;

  /** The model named by a request that {@link read} refused, for its record; empty: none that can be read. */
  abstract named(): string;
}

/** A request with what it refers to in its place. */
export interface Recalled<Out extends Chunk> {
  readonly request: ReadRequest<Out>;
  /** The routes that can serve it. */
  readonly routes: readonly PlannedRoute[];
}

/** A request that has been read: asks vendors, and passes their replies on. */
export abstract class ReadRequest<Out extends Chunk> {
  abstract readonly text: AskedText;
  /** The dialect that vendors are asked in where they speak it; `undefined`: any. */
  abstract readonly dialect: Dialect | undefined;
  /** What vendors are asked for; `undefined`: a text generation. */
  readonly operation: OperationName | undefined = undefined;
  /** The query to pass on, without its question mark. */
  readonly query: string = "";
  /** Whether every request of the style must limit its reply, so that the limit does not tell how long the client
   * expects it to be. */
  readonly isLimitRequired: boolean = false;
  /** Members of the reply that the caller's style could not carry. */
  readonly droppedOfReply: readonly string[] = [];

  /** The routes that can serve it; `undefined`: those whose vendors can be asked in a dialect. */
  plan(): readonly PlannedRoute[] | undefined {
    return undefined;
  }

  /** Puts what the request refers to in its place, before a vendor is asked; `undefined`: it refers to nothing. */
  recall(_routes: readonly PlannedRoute[]): Promise<Recalled<Out>> | undefined {
    return undefined;
  }

  /** Makes the request for a vendor. @throws GatewayError INVALID_REQUEST where it cannot be carried */
  abstract prepare(model: ModelConfig, planned: PlannedRoute): PreparedCall;

  /** Whether a reply is passed on while it comes. */
  isStreamed({ headers }: VendorReply): boolean {
    return (headers["content-type"] ?? "").startsWith("text/event-stream");
  }

  /** Reads a complete reply. @throws UnreadableReplyError */
  abstract whole(body: Buffer, planned: PlannedRoute, reply: VendorReply): WholeReply<Out>;

  /** Reads a streamed reply. */
  abstract stream(planned: PlannedRoute, reply: VendorReply): ReplyStream<Out>;

  /** The headers of a reply, by lower-case name. */
  abstract headers(reply: ReplyHead): Record<string, string>;

  /** A vendor's refusal of the request as invalid: what to pass on as it is, or the error to tell. */
  abstract refusal(refused: Refused, planned: PlannedRoute): Out | GatewayError;

  /**
   * Keeps what a later request may refer to, before the caller gets the end of the reply; `undefined`: nothing.
   *
   * @param last what goes to the caller with the end
   */
  keep(_last: Out, _planned: PlannedRoute): Promise<void> | undefined {
    return undefined;
  }

  /** What writes the cost into the reply; `undefined`: the caller did not ask for it. */
  costWriter(): CostWriter<Out> | undefined {
    return undefined;
  }

  /** What is charged for. */
  meter(delivered: Delivered): Metered {
    return meter(delivered);
  }
}
