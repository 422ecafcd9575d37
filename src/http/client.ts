/**
 * Requests to vendors: one keep-alive pool per origin, timeouts, abort, and a reply whose body is read
 * at the pace of whoever takes it. No redirects, no retries, no decompression.
 */
import { Readable } from "node:stream";
import { type Dispatcher, Pool } from "undici";
import type { VendorTimeouts } from "../config/config.ts";
import { HttpFailure, readFailure } from "./failure.ts";
import { ReplyBody } from "./reply-body.ts";

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
  readonly signal: AbortSignal;
}

/** The head of a reply, and its body as it comes. */
export interface HttpReply {
  readonly status: number;
  /** By lower-case name; a header that came twice is joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ReplyBody;
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
  return new Promise((resolve, reject) => {
    if (request.signal.aborted) {
      reject(new HttpFailure("aborted", "aborted before it was sent"));
      return;
    }
    const { method, path, headers, body, isPatient, signal } = request;
    const options: Dispatcher.DispatchOptions =
      body.length <= 1
        ? { method, path, headers: { ...headers }, body: body[0] ?? null }
        : { method, path, headers: withLength(headers, body), body: Readable.from(body) };
    pool.dispatch(
      isPatient === true ? { ...options, ...noTimeouts } : options,
      new ReplyHandler(signal, resolve, reject),
    );
  });
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

class ReplyHandler implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal;
  readonly #resolve: (reply: HttpReply) => void;
  readonly #reject: (failure: HttpFailure) => void;
  #body: ReplyBody | undefined;
  #controller: Dispatcher.DispatchController | undefined;

  constructor(
    signal: AbortSignal,
    resolve: (reply: HttpReply) => void,
    reject: (failure: HttpFailure) => void,
  ) {
    this.#signal = signal;
    this.#resolve = resolve;
    this.#reject = reject;
    signal.addEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => {
    const failure = new HttpFailure("aborted", "aborted");
    if (this.#controller === undefined) this.#reject(failure);
    else this.#controller.abort(failure);
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#signal.aborted) controller.abort(new HttpFailure("aborted", "aborted"));
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // Interim replies (1xx) only say that the final one will come.
    if (status < 200) return;
    this.#body = new ReplyBody(controller);
    this.#resolve({ status, headers: flat(headers), body: this.#body });
  }

  onResponseData(_controller: Dispatcher.DispatchController, bytes: Buffer): void {
    this.#body?.push(bytes);
  }

  onResponseEnd(): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#body?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    const failure = readFailure(error);
    if (this.#body === undefined) this.#reject(failure);
    else this.#body.fail(failure);
  }
}

function flat(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const flattened: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) flattened[name] = typeof value === "string" ? value : value.join(", ");
  }
  return flattened;
}
