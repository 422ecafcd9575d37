/** The caller's side of a run: bytes in a wire style, or the contract's own messages. */
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig, RouteConfig } from "../config/config.ts";
import type { GatewayError } from "../errors.ts";
import type { OperationName } from "../vendor/vendor.ts";
import type { Vendor, VendorCall, VendorReply } from "../vendor/vendor.ts";
import type { UnitUsage } from "../billing/price.ts";
import type { Delivered, Metered } from "./metering.ts";

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
  /** How much of it does not stand in the body: its vendor keeps it, and its model reads it. Default 0. */
  readonly keptBytes?: number;
  /** What it is charged by beside tokens. Default: nothing. */
  readonly units?: UnitUsage;
}

/** A route, and the style in which its vendor is asked. */
export interface PlannedRoute {
  readonly route: RouteConfig;
  /** The dialect that its vendor is asked in; `undefined`: it has none, or is not there. */
  readonly dialect: Dialect | undefined;
  /** Whether its vendor goes on where the client leaves, to learn what it costs. Default false. */
  readonly isDrained?: boolean;
  /** Its vendor's configured address. Absent: it has none. */
  readonly vendorUrl?: string;
}

/** A request with what it refers to in its place. */
export interface Recalled {
  /** The routes that can serve it. */
  readonly routes: readonly PlannedRoute[];
  /** What it has become: what was put in its place is read, and paid for, like the rest. */
  readonly text: AskedText;
}

/** What a vendor is sent. */
export interface PreparedCall {
  readonly headers: Readonly<Record<string, string>>;
  /** In pieces, to be sent one after the other. */
  readonly body: readonly Buffer[];
  /** What the pieces were cut from, where they differ from it by a few members only: it is in one piece, to be looked
   * through without joining them. Default: they are joined. */
  readonly source?: Buffer;
  /** What the vendor's style cannot carry, in the caller's words. */
  readonly dropped: readonly string[];
}

/** What goes to a caller at once: bytes, or events. Empty: nothing yet. */
export type Chunk = { readonly length: number };

/** A reply that came whole, as it goes to the caller. */
export interface WholeReply<Out> {
  readonly body: Out;
  readonly usage: Usage | undefined;
  readonly textBytes: number;
  /** What was made beside text. Default: nothing. */
  readonly units?: UnitUsage | undefined;
}

/** A streamed reply on its way to the caller: what {@link StreamRelay} is for bytes. */
export interface ReplyStream<Out> {
  push(pieces: readonly Buffer[]): Out;
  end(): Out;
  /** What ends a stream that failed; empty: the failure itself is thrown. */
  errorEvent(error: GatewayError): Out;
  /** Ends a reply that has not finished, as one that came to its limit of tokens. */
  stop(usage: Usage | undefined): Out;
  readonly usage: Usage | undefined;
  readonly textBytes: number;
  /** What was made beside text. Default: nothing. */
  readonly units?: UnitUsage | undefined;
  readonly finished: boolean;
  readonly done: boolean;
  readonly failed: boolean;
}

/** What is known of a reply when its head goes out. */
export interface ReplyHead {
  /** The vendor's headers, by lower-case name. */
  readonly upstream: Readonly<Record<string, string>>;
  /** The length of a whole reply in bytes; `undefined`: it is streamed. */
  readonly length: number | undefined;
  /** What the vendor's style could not carry of the request. */
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

/** One request of a caller. */
export interface Door<Out> {
  /** The dialect that vendors are asked in where they speak it; `undefined`: any. */
  readonly dialect: Dialect | undefined;
  /** What vendors are asked for. Absent: a text generation. */
  readonly operation?: OperationName;
  /** Whether every request must limit its reply, so that the limit does not tell how long the client expects
   * it to be. Default false. */
  readonly isLimitRequired?: boolean;
  /** What the call is charged for. Absent: as a text generation. */
  readonly meter?: (delivered: Delivered) => Metered;
  /** Whether models that make no text can be asked, too. Default: they cannot. */
  readonly takesAnyModel?: boolean;
  /** For the call log. */
  readonly path: string;
  /** The query to pass on, without its question mark. */
  readonly query: string;
  /** Reads the request. @throws GatewayError INVALID_REQUEST */
  read(): AskedText;
  /** The model that a request names which {@link read} refused; empty: none that can be read. Default: none. */
  named?(): string;
  /** The routes that can serve it. Absent: those whose vendors can be asked in a dialect. */
  plan?(model: ModelConfig): readonly PlannedRoute[];
  /** Asks a vendor. Absent: in the planned dialect. @throws HttpFailure */
  send?(vendor: Vendor, call: VendorCall): Promise<VendorReply>;
  /** Whether a reply is passed on while it comes. Absent: where it says that it is a stream of events. */
  isStreamed?(reply: VendorReply): boolean;
  /**
   * Puts what the request refers to in its place, before a vendor is asked; `undefined`: it refers to
   * nothing. Absent: it never does.
   */
  recall?(routes: readonly PlannedRoute[]): Promise<Recalled> | undefined;
  /**
   * Keeps what a later request may refer to, before the caller gets the end of the reply; `undefined`:
   * nothing. Absent: it never does.
   *
   * @param last what goes to the caller with the end
   */
  keep?(last: Out, planned: PlannedRoute): Promise<void> | undefined;
  /** Makes the request for a vendor. @throws GatewayError INVALID_REQUEST where it cannot be carried */
  prepare(model: ModelConfig, planned: PlannedRoute): PreparedCall;
  /** Reads a reply that came whole. @throws UnreadableReplyError */
  whole(body: Buffer, planned: PlannedRoute): WholeReply<Out>;
  /** Reads a reply that comes as a stream. @param mayStop whether it may be stopped before its end */
  stream(planned: PlannedRoute, mayStop: boolean): ReplyStream<Out>;
  /** The headers of a reply, by lower-case name. @param length of a whole one; `undefined`: streamed */
  headers(reply: ReplyHead): Record<string, string>;
  /** A vendor's refusal of the request as invalid: what to pass on as it is, or the error to tell. */
  refusal(refused: Refused, planned: PlannedRoute): Out | GatewayError;
  /** What of the reply the caller's style could not carry. */
  readonly droppedOfReply: readonly string[];
}
