/**
 * HTTP client for vendors: one keep-alive pool per origin, timeouts and cancellation. Bodies are
 * read at the pace of their reader, and decompressed if necessary. No redirects or retries.
 */
import { type Dispatcher, Pool } from "undici";
import type { VendorTimeouts } from "../config/config.ts";
import { streamBufferBytesMax } from "../core/limits.ts";
import { joinBuffers } from "../core/bytes.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import { HttpFailure, readFailure } from "./failure.ts";
import { type DecoderUser, ReplyDecoder } from "./reply-decoder.ts";
import { contentOf, type StreamedBody } from "./request-body.ts";
import { MaskedBody, SecretMask } from "./secret-mask.ts";
import { ExchangeWatch, type WatchedExchange, Silence } from "./exchange-limits.ts";

/** A request to an origin. */
interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path and query, with a leading slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Pieces of the body, sent in order; empty means no body. */
  readonly body: readonly Uint8Array[] | StreamedBody;
  /** Ignore timeouts; only `signal` ends the request. Default false. */
  readonly isPatient?: boolean | undefined;
  /** The time until the head of the reply. The client's limit by default. */
  readonly firstByteMs?: number | undefined;
  /**
   * Cancels the request and its reply. A reason that is an {@link HttpFailure} is reported as the
   * failure.
   */
  readonly signal: CancelSignal;
}

/** A client of one origin. */
export interface HttpClient {
  /**
   * Sends a request. Resolves with the reply's head for every status.
   *
   * @throws HttpFailure
   */
  send(request: HttpRequest): Promise<HttpReply>;
  /** Cancels running requests and closes all connections. */
  close(): Promise<void>;
}

/**
 * Opens a pool to `origin`. It opens as many connections as there are concurrent calls and does not
 * pipeline, so that a slow reply delays no other.
 *
 * @param credential the headers that carry it. Replies show stars in its place. None by default
 */
export function createHttpClient(
  origin: string,
  timeouts: VendorTimeouts,
  credential: Readonly<Record<string, string>> = {},
): HttpClient {
  const pool = new Pool(origin, {
    connections: null,
    pipelining: 1,
    allowH2: false,
    connectTimeout: timeouts.connectMs,
    headersTimeout: timeouts.firstByteMs,
    bodyTimeout: timeouts.idleMs,
  });
  const watch = new ExchangeWatch(timeouts);
  const mask = new SecretMask(credential);
  return {
    send: (request) => send(pool, { watch, mask }, request),
    close: () => pool.destroy(),
  };
}

/** State that the exchanges of a client share. */
interface Shared {
  /** Ends exchanges at their limits. If undefined, only their signals end them. */
  readonly watch: ExchangeWatch | undefined;
  readonly mask: SecretMask;
}

function send(pool: Pool, shared: Shared, request: HttpRequest): Promise<HttpReply> {
  const { method, path, headers, body, isPatient = false, firstByteMs, signal } = request;
  const exchange = new HttpExchange(signal, isPatient ? { ...shared, watch: undefined } : shared);
  if (!signal.aborted) {
    const options: Dispatcher.DispatchOptions = { method, path, ...contentOf(headers, body) };
    if (firstByteMs !== undefined) options.headersTimeout = firstByteMs;
    pool.dispatch(isPatient ? { ...options, ...noTimeouts } : options, exchange);
  }
  return exchange.answered;
}

/** 0 means no timeout in undici. */
const noTimeouts = { headersTimeout: 0, bodyTimeout: 0 } as const;

/** The head of a reply, and its body. */
interface HttpReply {
  readonly status: number;
  /**
   * Lower-case names; repeated headers are joined by a comma. Without the headers of a decoded
   * encoding.
   */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: HttpBody;
}

/** A reply body without the credential, read as `while (await body.ready()) use(body.take())`. */
interface HttpBody {
  /**
   * Resolves to whether data is available; false at the end. Rejects with {@link HttpFailure} if
   * the reply broke, once earlier data has been taken. One reader at a time.
   */
  ready(): Promise<boolean>;
  /** The pieces received so far; empty if there are none. */
  take(): Buffer[];
  /** The whole body. Rejects if it is longer than `bytesMax`. */
  whole(bytesMax: number): Promise<Buffer>;
  /** Stops reading and closes the connection if the reply has not ended. */
  cancel(): void;
}

/**
 * One request and its reply. undici's handler, the head and the body are one object, because every
 * call creates one.
 *
 * Pieces that arrive together are taken as one batch: a vendor sends events as many small HTTP
 * chunks in one socket read, and one event-loop turn for each would cost five times the CPU of
 * everything else. Buffers at most {@link streamBufferBytesMax} ahead of the reader, then pauses
 * the connection.
 */
class HttpExchange implements Dispatcher.DispatchHandler, HttpReply, HttpBody, WatchedExchange {
  status = 0;
  headers: Readonly<Record<string, string>> = {};
  /** Resolves with the head of the reply. @throws HttpFailure */
  readonly answered: Promise<HttpReply>;

  readonly silence = new Silence();
  place = -1;

  readonly #signal: CancelSignal;
  readonly #watch: ExchangeWatch | undefined;
  readonly #mask: SecretMask;
  readonly #masked: MaskedBody;
  #decoder: ReplyDecoder | undefined;
  #answer: (reply: HttpReply) => void = unreachable;
  #refuse: (failure: HttpFailure) => void = unreachable;
  #controller: Dispatcher.DispatchController | undefined;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Buffered bytes at which the connection is paused. */
  #waitingBytesMax = streamBufferBytesMax;
  #isWhole = false;
  #isSent = false;
  #wake: ((isThere: boolean) => void) | undefined;
  #break: ((failure: HttpFailure) => void) | undefined;
  #ended = false;
  #failure: HttpFailure | undefined;

  constructor(signal: CancelSignal, { watch, mask }: Shared) {
    this.#signal = signal;
    this.#watch = watch;
    this.#mask = mask;
    this.#masked = new MaskedBody(mask);
    this.answered = new Promise((resolve, reject) => {
      this.#answer = resolve;
      this.#refuse = reject;
    });
    if (signal.aborted) this.#refuse(new HttpFailure("aborted", "aborted before it was sent"));
    else {
      signal.addEventListener("abort", this.#onAbort);
      watch?.add(this);
    }
  }

  get isPaused(): boolean {
    return this.#waitingBytes > 0 && !this.#isWhole;
  }

  expire(failure: HttpFailure): void {
    // Without a connection it is watched until the connection's time limit.
    if (this.#controller !== undefined) this.#abort(this.#controller, failure);
  }

  get body(): HttpBody {
    return this;
  }

  ready(): Promise<boolean> {
    if (this.#waiting.length > 0) return Promise.resolve(true);
    if (this.#isOver && this.#masked.isHolding) return Promise.resolve(true);
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#ended) return Promise.resolve(false);
    return new Promise((resolve, reject) => {
      this.#wake = resolve;
      this.#break = reject;
    });
  }

  take(): Buffer[] {
    const pieces = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#resume();
    const bytes = this.#masked.push(pieces, this.#isOver);
    return bytes.length === 0 ? [] : [bytes];
  }

  /** Whether the reply is complete or has failed. */
  get #isOver(): boolean {
    return this.#ended || this.#failure !== undefined;
  }

  cancel(): void {
    if (this.#isOver) return;
    const failure = new HttpFailure("aborted", "no longer wanted");
    if (this.#controller !== undefined) this.#abort(this.#controller, failure);
  }

  whole(bytesMax: number): Promise<Buffer> {
    this.#isWhole = true;
    this.#waitingBytesMax = bytesMax + 1;
    this.#resume();
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (this.#waitingBytes > bytesMax) {
          this.cancel();
          reject(new HttpFailure("reset", `the reply is longer than ${bytesMax} bytes`));
        } else if (this.#ended) resolve(joinBuffers(this.take()));
        else if (this.#failure !== undefined) reject(this.#failure);
        else {
          this.#wake = look;
          this.#break = reject;
        }
      };
      look();
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#signal.aborted) controller.abort(new HttpFailure("aborted", "aborted"));
  }

  onRequestSent(): void {
    this.#isSent = true;
    this.#signal.onSent?.();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // Interim replies (1xx) only announce the final one.
    if (status < 200) return;
    this.status = status;
    this.headers = flat(headers, this.#mask);
    this.silence.begin(this.headers["content-type"]);
    this.#decoder = ReplyDecoder.of(this.headers["content-encoding"], () => this.#decoded());
    if (this.#decoder !== undefined) this.headers = withoutEncoding(this.headers);
    this.#answer(this);
  }

  onResponseData(controller: Dispatcher.DispatchController, bytes: Buffer): void {
    if (this.#decoder === undefined) this.#onData(bytes);
    else if (!this.#decoder.write(bytes)) controller.pause();
  }

  onResponseEnd(): void {
    if (this.#decoder === undefined) this.#onEnd();
    else this.#decoder.end();
  }

  #onData(bytes: Buffer): void {
    this.silence.hear(bytes);
    // Paced streams arrive in reads of one piece: an array with a pushed element allocates space
    // for 17.
    if (this.#waiting.length === 0) this.#waiting = [bytes];
    else this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes >= this.#waitingBytesMax) this.#pause();
    // A reader of the whole body waits for its end.
    else if (this.#isWhole) return;
    // Wakes the reader only after the parser has handled everything in this socket read.
    this.#tell(true);
  }

  #onEnd(): void {
    this.#finish();
    this.#ended = true;
    this.#tell(this.#masked.isHolding);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#decoder?.destroy();
    this.#onError(error);
  }

  #onError(error: Error): void {
    if (this.#isOver) return;
    this.#finish();
    const failure = readFailure(error);
    failure.isSent = this.#isSent;
    if (this.status === 0) this.#refuse(failure);
    // Data received before the failure can still be read.
    this.#failure = failure;
    if (this.#masked.isHolding) this.#tell(true);
    const fail = this.#break;
    this.#wake = this.#break = undefined;
    fail?.(failure);
  }

  /** Handles the output of the decoder of a compressed reply. */
  #decoded(): DecoderUser {
    return {
      onDecoded: (bytes) => this.#onData(bytes),
      onDecodedEnd: () => this.#onEnd(),
      onUndecodable: (failure) => {
        this.#onError(failure);
        this.#controller?.abort(failure);
      },
      onReady: () => this.#controller?.resume(),
    };
  }

  #pause(): void {
    if (this.#decoder === undefined) this.#controller?.pause();
    else this.#decoder.pause(true);
  }

  #resume(): void {
    if (this.#decoder !== undefined) this.#decoder.pause(false);
    else if (this.#controller?.paused === true) this.#controller.resume();
  }

  #finish(): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#watch?.delete(this);
  }

  readonly #onAbort = (): void => {
    const { reason } = this.#signal;
    const failure = reason instanceof HttpFailure ? reason : new HttpFailure("aborted", "aborted");
    if (this.#controller === undefined) this.#refuse(failure);
    else this.#abort(this.#controller, failure);
  };

  #abort(controller: Dispatcher.DispatchController, failure: HttpFailure): void {
    controller.abort(failure);
    if (this.#decoder === undefined) return;
    // All bytes may have been received, but not decoded yet.
    this.#decoder.destroy();
    this.#onError(failure);
  }

  #tell(isThere: boolean): void {
    const wake = this.#wake;
    if (wake === undefined) return;
    this.#wake = this.#break = undefined;
    wake(isThere);
  }
}

function unreachable(): never {
  throw new Error("a promise runs its executor at once");
}

/** The headers of a reply that is decoded. */
function withoutEncoding(headers: Readonly<Record<string, string>>): Record<string, string> {
  const { "content-encoding": _encoding, "content-length": _length, ...others } = headers;
  return others;
}

/**
 * The headers, each as one text, without the credential. undici creates the record for this reply
 * alone.
 */
function flat(
  headers: Record<string, string | string[] | undefined>,
  mask: SecretMask,
): Record<string, string> {
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined) delete headers[name];
    else if (mask.spellings.length > 0 || typeof value !== "string") {
      headers[name] = mask.text(typeof value === "string" ? value : value.join(", "));
    }
  }
  return headers as Record<string, string>;
}
