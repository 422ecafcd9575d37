/** The simulated vendor's view of one request, and the interface for scripted answers. */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";

/** One request as it arrived, kept for the test to look at. */
export interface RecordedRequest {
  readonly method: string;
  /** Path and query as sent. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, in the order and spelling they were sent. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** The parsed body; `undefined` if it is not a JSON object. */
  readonly json: ChatBody | undefined;
  /** Pieces of the reply written so far. */
  readonly written: number;
  /** Bytes of the reply's body written so far. */
  readonly writtenBytes: number;
  /** Whether the reply waits for the gateway to read. */
  readonly isBlocked: boolean;
  /** Resolves when the exchange is over: true if the gateway left before the reply had ended. */
  readonly left: Promise<boolean>;
}

/** The members of a chat-completions body that the simulation reads. */
export interface ChatBody {
  readonly [member: string]: unknown;
  readonly model?: unknown;
  readonly messages?: unknown;
  readonly stream?: unknown;
  readonly stream_options?: unknown;
}

/** An exchange while it runs. */
export interface Exchange {
  readonly request: RecordedRequest;
  readonly response: ServerResponse;
  /** Aborted when the gateway leaves. */
  readonly signal: AbortSignal;
  /** Writes a piece of the body and waits until the gateway may get more. False: it has left. */
  write(bytes: Uint8Array): Promise<boolean>;
}

/** Answers one request. */
export type Behaviour = (exchange: Exchange) => Promise<void> | void;

/** Whether the body requests a stream. */
export function asksForStream(request: RecordedRequest): boolean {
  return request.json?.stream === true;
}

/** Whether the body requests usage in the stream. */
export function asksForUsage(request: RecordedRequest): boolean {
  const options = request.json?.stream_options;
  return isObject(options) && options["include_usage"] === true;
}

/** Whether a JSON value is an object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
