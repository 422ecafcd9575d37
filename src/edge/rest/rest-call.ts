/** One request on a direct route. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { JsonObject } from "@bufbuild/protobuf";
import {
  type Caller,
  gatewayStopping,
  type KeyCaller,
  type RefusedKey,
  resolveRequestId,
} from "../../core/caller.ts";
import { runInAccountContext } from "../../core/current-account.ts";
import { countedBytesMin, leaveMemory } from "../../core/body-memory.ts";
import { emptyBuffer } from "../../core/bytes.ts";
import { type CancelSignal, CancelSource } from "../../core/cancel-signal.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { type Placed, ShortLivedSet } from "../../core/short-lived.ts";
import { type SentReply, type Sink, type SinkHead, withinSettleWait } from "../../core/sink.ts";
import { errorHeaders, toGatewayError } from "./errors.ts";
import { halfClosed } from "./http-server.ts";
import { keyInUrlHeaders, refuseKey, refuseMissingKey } from "./key-refusal.ts";
import type { FacadeOptions } from "./options.ts";
import {
  type ArrivingForm,
  headerText,
  openForm,
  type PresentedKey,
  readBody,
  replyBeforeBodyEnds,
} from "./request-parts.ts";

/** The differences between routes. */
export interface RestRouteOptions {
  /** The route in metrics and logs. */
  readonly label: string;
  /** The response headers that carry the request id. */
  readonly requestIdHeaders: readonly string[];
  /** Headers of every response on the route. Default: none. */
  readonly fixedHeaders?: Readonly<Record<string, string>> | undefined;
  /** Reads the key of a request. Without a key the answer is 401. */
  keyOf(request: IncomingMessage): PresentedKey;
  /** Whether the request is a model call, which has a call record. */
  isCall(request: IncomingMessage): boolean;
  /** The path in the call record. */
  pathOf(request: IncomingMessage): string;
  /**
   * The caller if the path itself is a credential, or none is needed. Undefined if a key is
   * required.
   */
  callerWithoutKey?(request: IncomingMessage): Caller | undefined;
  /** Checks the request's head before its body is read. @throws GatewayError */
  checkHead(request: IncomingMessage): void;
  /**
   * Whether the body is a form, which the handler reads while it arrives. By default, bodies are
   * read before the handler runs.
   */
  isForm?(request: IncomingMessage): boolean;
  /** Calls the handler. @throws GatewayError for failures that were not written to the sink */
  handle(
    request: IncomingMessage,
    body: Buffer,
    call: RestCall,
    form: ArrivingForm | undefined,
  ): Promise<SentReply>;
  /** The body of an error response. */
  errorBody(error: GatewayError, requestId: string): JsonObject;
  /** Bytes that fill silence in a streamed reply; `undefined` for none. */
  keepAlive(head: SinkHead): Buffer | undefined;
}

/** Dependencies shared by all requests. */
export interface RestCallDeps
  extends Pick<
    FacadeOptions,
    | "authenticate"
    | "onRefusedKey"
    | "metrics"
    | "requests"
    | "isOpen"
    | "requireCapacity"
    | "bodies"
  > {
  /** The running calls, which are cancelled when the gateway stops. */
  readonly running: ShortLivedSet<RestCall>;
}

/** A reply that is not streamed. */
interface WholeReply {
  readonly head: SinkHead;
  readonly body: Buffer;
}

/** Bodies up to this length are written together with their head; a separate write costs 3 µs. */
const joinedBytesMax = 16 * 1024;

/**
 * A request from its head to the end of its reply. This one object holds the caller, is the call's
 * cancellation signal, and is the sink of its reply; there is no layer between socket and handler.
 */
export class RestCall extends CancelSource implements Sink<Buffer>, Placed {
  readonly requestId: string;
  /** Set once the key has been checked. */
  caller: Caller | undefined;
  /** Whether the handler records and logs the request. */
  isRecorded = false;
  place = -1;

  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #route: RestRouteOptions;
  readonly #deps: RestCallDeps;
  readonly #startedMs = performance.now();
  /**
   * Response headers for a key in the URL, or for a connection that closes. Undefined if neither
   * applies.
   */
  #headers: Record<string, string> | undefined;
  #errorCode = "";
  #writer: StreamWriter | undefined;
  /** A whole reply that waits for settlement. */
  #whole: WholeReply | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    { route, deps }: { readonly route: RestRouteOptions; readonly deps: RestCallDeps },
  ) {
    super();
    this.#request = request;
    this.#response = response;
    this.#route = route;
    this.#deps = deps;
    const { headers } = request;
    this.requestId = resolveRequestId(
      headerText(headers["x-request-id"]),
      headerText(headers["request-id"]),
    );
    deps.metrics.requestsInFlight.inc();
    deps.running.add(this);
    // Emitted exactly once, also after a disconnect.
    response.on("close", this.#onClose);
  }

  /** Cancelled by a disconnect of the client, or when the gateway stops. */
  get signal(): CancelSignal {
    return this;
  }

  /** @see CallContext */
  get idempotencyKey(): string | undefined {
    return headerText(this.#request.headers["idempotency-key"]);
  }

  /** @see CallContext */
  get traceparent(): string | undefined {
    return headerText(this.#request.headers["traceparent"]);
  }

  /**
   * The caller whose account is charged.
   *
   * @throws TypeError on a route that allows callers without a key
   */
  get keyCaller(): KeyCaller {
    if (this.caller?.kind === "key") return this.caller;
    throw new TypeError("a route without a key has no account to charge");
  }

  /** Serves the request. Never rejects. */
  async serve(): Promise<void> {
    try {
      const known = this.#begin();
      const caller =
        typeof known === "string" ? this.#accept(await this.#deps.authenticate(known)) : known;
      this.caller = caller;
      const request = this.#request;
      const response = this.#response;
      const route = this.#route;
      route.checkHead(request);
      const options = { bodies: this.#deps.bodies, caller };
      const isForm = route.isForm?.(request) === true;
      const form = isForm ? openForm(request, response, options) : undefined;
      const body = isForm ? emptyBuffer : await readBody(request, response, options);
      const { settled } = await runInAccountContext(caller, () =>
        route.handle(request, body, this, form),
      );
      // No code reads the body of a settled call. For a failed call, this is not certain.
      if (body.length >= countedBytesMin) void settled?.then(() => leaveMemory(body));
      if (settled !== undefined) await withinSettleWait(settled);
      this.#end();
    } catch (error) {
      await this.#fail(error);
    }
  }

  whole(head: SinkHead, body: Buffer): void {
    this.#whole = { head, body };
  }

  #sendWhole({ head: { status, headers }, body }: WholeReply): void {
    const response = this.#response;
    if (response.destroyed) return;
    response.writeHead(status, this.#added(headers));
    if (body.length <= joinedBytesMax) {
      response.end(body.toString("latin1"), "latin1");
      return;
    }
    // Shorter bodies fit into the system's buffers, whether the client reads or not.
    response.setTimeout(stallMs, () => response.destroy());
    response.end(body);
  }

  head(head: SinkHead): void {
    const response = this.#response;
    if (response.destroyed) return;
    response.writeHead(head.status, this.#added(head.headers));
    response.flushHeaders();
    this.#writer = new StreamWriter(response, this.#route.keepAlive(head));
  }

  chunk(out: Buffer): Promise<void> | undefined {
    return this.#writer?.write(out);
  }

  /**
   * Adds the headers of every response.
   *
   * @param headers an object for this response alone
   */
  #added(headers: Record<string, string>): Record<string, string> {
    const { requestIdHeaders, fixedHeaders } = this.#route;
    for (const name of requestIdHeaders) headers[name] = this.requestId;
    if (fixedHeaders !== undefined) Object.assign(headers, fixedHeaders);
    return this.#headers === undefined ? headers : Object.assign(headers, this.#headers);
  }

  /**
   * Finds the key, or the caller if no key is needed, before any byte of the body is read.
   *
   * @throws GatewayError
   */
  #begin(): Caller | string {
    const { metrics, isOpen } = this.#deps;
    const request = this.#request;
    if (!isOpen()) {
      this.#headers = { connection: "close" };
      throw gatewayStopping();
    }
    const route = this.#route;
    const known = route.callerWithoutKey?.(request);
    if (known !== undefined) {
      this.#headers = { ...keyInUrlHeaders };
      return known;
    }
    const { key, isInUrl } = route.keyOf(request);
    if (isInUrl) this.#headers = { ...keyInUrlHeaders };
    if (key === undefined) throw refuseMissingKey(metrics);
    return key;
  }

  /** The caller that a key belongs to. @throws GatewayError */
  #accept(found: Caller | RefusedKey | undefined): Caller {
    const route = this.#route;
    const request = this.#request;
    const isCall = route.isCall(request);
    if (found !== undefined && found.kind !== "refused") {
      // Checked before the body is read: an overloaded gateway must not spend more on it.
      if (isCall) this.#deps.requireCapacity();
      return found;
    }
    const { onRefusedKey } = this.#deps;
    const path = isCall ? route.pathOf(request) : undefined;
    const { requestId } = this;
    throw refuseKey(this, found, { onRefusedKey, requestId, path });
  }

  /**
   * Ends the reply, only after settlement. So a complete reply is charged even if the process is
   * killed at that moment, and the client finds its call record at once.
   */
  #end(): void {
    this.#writer?.end();
    this.#writer?.close();
    if (this.#whole !== undefined) this.#sendWhole(this.#whole);
  }

  async #fail(error: unknown): Promise<void> {
    const shown = toGatewayError(error);
    const { requestId } = this;
    this.#errorCode = shown.meaning.word;
    if (shown.code === ErrorCode.INTERNAL_ERROR) {
      this.#deps.requests.failed(requestId, shown);
    }
    const response = this.#response;
    this.#writer?.close();
    if (response.headersSent) {
      // The style has no event for failures, and a clean end would look like success.
      response.destroy();
      return;
    }
    if (response.destroyed) return;
    const body = Buffer.from(JSON.stringify(this.#route.errorBody(shown, this.#echoedId())));
    const type = { "content-type": "application/json; charset=utf-8" };
    const headers = { ...errorHeaders(shown), ...type };
    const { status } = shown;
    if (this.#request.complete) {
      const all = { ...headers, "content-length": String(body.length) };
      this.#sendWhole({ head: { status, headers: all }, body });
      return;
    }
    const reply = { status, headers: this.#added(headers), body };
    await replyBeforeBodyEnds(this.#request, response, reply);
  }

  #echoedId(): string {
    return this.#route.requestIdHeaders.includes("x-request-id") ? this.requestId : "";
  }

  readonly #onClose = (): void => {
    const { metrics, requests, running } = this.#deps;
    const response = this.#response;
    running.delete(this);
    metrics.requestsInFlight.dec();
    const { label: route } = this.#route;
    const status = response.headersSent ? response.statusCode : 499;
    metrics.countRequest(route, status);
    if (!response.writableFinished) this.cancel();
    if (this.isRecorded) return;
    const { requestId } = this;
    const { method = "" } = this.#request;
    const durationMs = Math.round(performance.now() - this.#startedMs);
    const errorCode = this.#errorCode;
    requests.ended({ requestId, route, method, status, errorCode, durationMs });
  };
}

/**
 * Interval of the silence check, and the number of silent intervals after which filler is sent: 15
 * to 20 s (R-TXT-8). Counting intervals adds no cost to writes; restarting a timer at each write
 * did.
 */
const lookMs = 5_000;
const silentLooks = 4;

/**
 * Maximum time a client may read no data before it is disconnected. Until then it uses memory; a
 * stream also uses a hold and a vendor connection.
 */
export const stallMs = 120_000;

/**
 * Pieces up to this size are copied behind their head or into their HTTP chunk. Otherwise Node.js
 * passes a head and its body to the system as two pieces in a `writev`, and a chunk as three, which
 * costs 3 µs more than one piece. For larger pieces, copying costs as much.
 */
const copiedBytesMax = 16 * 1024;

/** Writes a reply at the pace of its client: one write per piece, never more than one ahead. */
export class StreamWriter {
  readonly #response: ServerResponse;
  /** Whether this class writes HTTP chunks. HTTP/1.0 clients get none. */
  readonly #isChunked: boolean;
  readonly #filler: Buffer | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Intervals since the last write. */
  #looks = 0;

  /**
   * @param response its head has been sent
   * @param filler bytes to send after silence; `undefined` for none
   */
  constructor(response: ServerResponse, filler: Buffer | undefined) {
    this.#response = response;
    this.#filler = filler;
    this.#isChunked = response.chunkedEncoding;
    response.chunkedEncoding = false;
    if (filler === undefined) return;
    this.#timer = setInterval(this.#look, lookMs).unref();
    response.on(halfClosed, this.#fill);
  }

  /**
   * Writes a piece. Waits while earlier data is unread. Resolves at once after a disconnect; the
   * signal notifies the producer.
   */
  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#looks = 0;
    const response = this.#response;
    if (response.destroyed || this.#send(bytes)) return undefined;
    return new Promise((resolve) => {
      const stalled = setTimeout(() => response.destroy(), stallMs);
      const onReady = (): void => {
        clearTimeout(stalled);
        response.off("drain", onReady);
        response.off("close", onReady);
        resolve();
      };
      response.on("drain", onReady);
      response.on("close", onReady);
    });
  }

  /** Ends the reply regularly. */
  end(): void {
    if (this.#response.destroyed) return;
    if (this.#isChunked) this.#response.end(lastChunk);
    else this.#response.end();
  }

  /** Stops the timer. */
  close(): void {
    clearInterval(this.#timer);
  }

  /** Returns whether more can be written at once. */
  #send(bytes: Uint8Array): boolean {
    const response = this.#response;
    if (!this.#isChunked) {
      // Text is appended to a head that was not sent yet, so that both are sent as one piece.
      if (bytes.length > copiedBytesMax) return response.write(bytes);
      return response.write(
        Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1"),
        "latin1",
      );
    }
    const size = `${bytes.length.toString(16)}\r\n`;
    if (bytes.length > copiedBytesMax) {
      response.write(size, "latin1");
      response.write(bytes);
      return response.write("\r\n", "latin1");
    }
    const chunk = Buffer.allocUnsafe(size.length + bytes.length + 2);
    chunk.write(size, 0, "latin1");
    chunk.set(bytes, size.length);
    chunk[chunk.length - 2] = 0x0d;
    chunk[chunk.length - 1] = 0x0a;
    return response.write(chunk);
  }

  readonly #look = (): void => {
    this.#looks++;
    if (this.#looks < silentLooks) return;
    this.#looks = 0;
    this.#fill();
  };

  readonly #fill = (): void => {
    const response = this.#response;
    // A write to a reply that has ended but is not completely sent would end the process.
    const canWrite = !response.destroyed && !response.writableEnded && !response.writableNeedDrain;
    if (this.#filler && canWrite) this.#send(this.#filler);
  };
}

const lastChunk = "0\r\n\r\n";

/**
 * Aborts a listener's running requests when the gateway stops. One listener serves all: adding and
 * removing one per request costs a microsecond.
 */
export function stopAll(stopping: AbortSignal): ShortLivedSet<RunningRequest> {
  const running = new ShortLivedSet<RunningRequest>();
  stopping.addEventListener("abort", () => {
    for (const abort of running.list()) abort.abort(stopping.reason);
  });
  return running;
}

/** A running request of a listener: a controller that is aborted when it must end. */
class RunningRequest extends AbortController implements Placed {
  place = -1;
}

/** A controller that is aborted when the client disconnects early. */
export function abortWith(
  response: ServerResponse,
  running: ShortLivedSet<RunningRequest>,
): AbortController {
  const abort = new RunningRequest();
  running.add(abort);
  response.on("close", () => {
    running.delete(abort);
    if (!response.writableFinished) abort.abort();
  });
  return abort;
}
