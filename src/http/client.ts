/**
 * Requests to vendors: one keep-alive pool per origin, timeouts, abort, and a reply whose body is read
 * at the pace of whoever takes it. No redirects, no retries, no decompression.
 */
import { Readable } from "node:stream";
import { type Dispatcher, Pool } from "undici";
import type { CancelSignal } from "../cancel-signal.ts";
import type { VendorTimeouts } from "../config/config.ts";
import { HttpExchange, type HttpReply } from "./exchange.ts";

/** A request to an origin. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** The path and query, with a leading slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** In pieces, to be sent one after the other; empty: no body. */
  readonly body: readonly Uint8Array[];
  /** Whether the reply may take as long as the signal lets, whatever the timeouts. Default false. */
  readonly isPatient?: boolean | undefined;
  /** Aborts the request and its reply. */
  readonly signal: CancelSignal;
}

/** Speaks to one origin. */
export interface HttpClient {
  /**
   * Sends a request and resolves at the reply's head, whatever its status.
   *
   * @throws HttpFailure
   */
  send(request: HttpRequest): Promise<HttpReply>;
  /** Ends running requests and closes every connection. */
  close(): Promise<void>;
}

/**
 * Opens a pool to `origin`. As many connections as calls run at once, no pipelining: a slow reply holds
 * nobody else up.
 */
export function createHttpClient(origin: string, timeouts: VendorTimeouts): HttpClient {
  const pool = new Pool(origin, {
    connections: null,
    pipelining: 1,
    allowH2: false,
    connectTimeout: timeouts.connectMs,
    headersTimeout: timeouts.firstByteMs,
    bodyTimeout: timeouts.idleMs,
  });
  return {
    send: (request) => send(pool, request),
    close: () => pool.destroy(),
  };
}

function send(pool: Pool, request: HttpRequest): Promise<HttpReply> {
  const { method, path, headers, body, isPatient = false, signal } = request;
  const exchange = new HttpExchange(signal);
  if (!signal.aborted) {
    const options: Dispatcher.DispatchOptions =
      body.length <= 1
        ? { method, path, headers, body: body[0] ?? null }
        : { method, path, headers: withLength(headers, body), body: Readable.from(body) };
    pool.dispatch(isPatient ? { ...options, ...noTimeouts } : options, exchange);
  }
  return exchange.answered;
}

/** 0 is none. */
const noTimeouts = { headersTimeout: 0, bodyTimeout: 0 } as const;

function withLength(
  headers: Readonly<Record<string, string>>,
  body: readonly Uint8Array[],
): Record<string, string> {
  const length = body.reduce((sum, piece) => sum + piece.length, 0);
  return { ...headers, "content-length": String(length) };
}
