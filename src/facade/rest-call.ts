/** One request on a route whose handler is called directly. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { JsonObject } from "@bufbuild/protobuf";
import { discardedBodyBytesMax, bodyBytesMax } from "../config/limits.ts";
import { inLaneOf } from "../core/account-context.ts";
import {
  gatewayStopping,
  invalidKey,
  missingKey,
  resolveRequestId,
  type Caller,
  type KeyCaller,
} from "../core/caller.ts";
import { CancelSource, type CancelSignal } from "../core/cancel-signal.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { soon, type Pushed, type Sink, type SinkHead } from "../core/sink.ts";
import { errorHeaders, toGatewayError, bodyTooLarge, wrongLength } from "./errors.ts";
import type { FacadeOptions } from "./options.ts";
import { headerText, type PresentedKey } from "./request-head.ts";
import { stallMs, StreamWriter } from "./stream-writer.ts";

/** What differs between routes. */
export interface RestRouteOptions {
  /** The route's name in metrics and logs. */
  readonly label: string;
  /** The response headers that carry the request id. */
  readonly requestIdHeaders: readonly string[];
  /** The key of a request; absent key: the answer is 401. */
  keyOf(request: IncomingMessage): PresentedKey;
  /** Whether a request is a call to a model, which has a record. */
  isCall(request: IncomingMessage): boolean;
  /** The path of a call in its record. */
  pathOf(request: IncomingMessage): string;
  /** Who calls where the address itself is a key, or nobody has to; `undefined`: a key is needed. */
  callerWithoutKey?(request: IncomingMessage): Caller | undefined;
  /** Checks the head of a request before its body is read. @throws GatewayError */
  checkHead(request: IncomingMessage): void;
  /** Calls the handler of the contract's method. @throws GatewayError where the sink was not told of the failure */
  handle(request: IncomingMessage, body: Buffer, call: RestCall): Promise<Pushed>;
  /** The body of an error. */
  errorBody(error: GatewayError, requestId: string): JsonObject;
  /** What fills the silence of a streamed reply; `undefined`: nothing. */
  keepAlive(head: SinkHead): Buffer | undefined;
}

/** What all requests share. */
export interface RestCallDeps
  extends Pick<
    FacadeOptions,
    "authenticate" | "onRefusedKey" | "metrics" | "log" | "isOpen" | "requireRoom"
  > {
  /** Calls to end when the gateway stops. */
  readonly running: Set<RestCall>;
}

/** Bodies up to this length leave with their head as one piece, in bytes: a second piece costs 3 µs. */
const joinedBytesMax = 16 * 1024;

/**
 * A request from its head to the end of its reply, as one object: who calls, what cancels the call, and the sink of its
 * reply. Nothing lies between the socket and the handler.
 */
export class RestCall extends CancelSource implements Sink<Buffer> {
  readonly requestId: string;
  /** Set once the key is checked. */
  caller: Caller | undefined;
  /** Whether the handler records and logs the request. */
  isRecorded = false;

  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #route: RestRouteOptions;
  readonly #deps: RestCallDeps;
  readonly #startedMs = performance.now();
  /** Headers of every answer. */
  readonly #headers: Record<string, string> = {};
  #errorCode = "";
  #writer: StreamWriter | undefined;

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
    const ids = [headerText(headers["x-request-id"]), headerText(headers["request-id"])];
    this.requestId = resolveRequestId(...ids);
    for (const name of route.requestIdHeaders) this.#headers[name] = this.requestId;
    deps.metrics.requestsInFlight.inc();
    deps.running.add(this);
    // Comes exactly once, also for a client that disconnected.
    response.on("close", this.#onClose);
  }

  /** What cancels the call: the client's disconnect, or the gateway's stop. */
  get signal(): CancelSignal {
    return this;
  }

  /** @see CallContext */
  get idempotencyKey(): string | undefined {
    return headerText(this.#request.headers["idempotency-key"]);
  }

  /** Who is charged. @throws TypeError where the route has callers without a key */
  get keyCaller(): KeyCaller {
    if (this.caller?.kind === "key") return this.caller;
    throw new TypeError("a route without a key has no account to charge");
  }

  /** Serves the request. Never rejects. */
  async serve(): Promise<void> {
    try {
      this.caller = await this.#identify();
      this.#route.checkHead(this.#request);
      const body = await readBody(this.#request);
      const { settled } = await inLaneOf(this.caller, () =>
        this.#route.handle(this.#request, body, this),
      );
      if (this.#writer !== undefined) await this.#end(this.#writer, settled);
    } catch (error) {
      await this.#fail(error);
    }
  }

  whole({ status, headers }: SinkHead, body: Buffer): void {
    const response = this.#response;
    if (response.destroyed) return;
    response.writeHead(status, { ...headers, ...this.#headers });
    if (body.length <= joinedBytesMax) {
      response.end(body.toString("latin1"), "latin1");
      return;
    }
    // Shorter ones fit into the system's buffers, whether their client reads them or not.
    response.setTimeout(stallMs, () => response.destroy());
    response.end(body);
  }

  head(head: SinkHead): void {
    const response = this.#response;
    if (response.destroyed) return;
    response.writeHead(head.status, { ...head.headers, ...this.#headers });
    response.flushHeaders();
    this.#writer = new StreamWriter(response, this.#route.keepAlive(head));
  }

  chunk(out: Buffer): Promise<void> | undefined {
    return this.#writer?.write(out);
  }

  /** The caller by the key alone: no byte of the body is read before. @throws GatewayError */
  async #identify(): Promise<Caller> {
    const { authenticate, onRefusedKey, metrics, isOpen } = this.#deps;
    const request = this.#request;
    if (!isOpen()) {
      this.#headers["connection"] = "close";
      throw gatewayStopping();
    }
    const route = this.#route;
    const known = route.callerWithoutKey?.(request);
    const { key, isInUrl } =
      known === undefined ? route.keyOf(request) : { key: undefined, isInUrl: true };
    if (isInUrl) {
      // A key stands in the URL: keep the answer out of caches, and the URL out of referrers.
      this.#headers["cache-control"] = "no-store";
      this.#headers["referrer-policy"] = "no-referrer";
    }
    if (known !== undefined) return known;
    if (key === undefined) {
      metrics.authFailures.inc({ reason: "missing" });
      throw missingKey();
    }
    const found = await authenticate(key);
    if (found !== undefined && found.kind !== "refused") {
      // Before its body is read: an overloaded gateway must not spend more on it.
      if (route.isCall(request)) this.#deps.requireRoom();
      return found;
    }
    if (found !== undefined && route.isCall(request)) {
      const { requestId } = this;
      const path = route.pathOf(request);
      this.isRecorded = onRefusedKey?.(found, { requestId, path }) ?? false;
    }
    throw invalidKey();
  }

  /** Ends a streamed reply once its call is settled, so that its client finds it at once. */
  async #end(writer: StreamWriter, settled: Promise<void> | undefined): Promise<void> {
    if (settled !== undefined) await soon(settled);
    writer.end();
    writer.close();
  }

  async #fail(error: unknown): Promise<void> {
    const told = toGatewayError(error);
    const { requestId } = this;
    this.#errorCode = told.meaning.word;
    if (told.code === ErrorCode.INTERNAL_ERROR) {
      this.#deps.log.error({ requestId, err: told.cause ?? told }, "a request failed");
    }
    const response = this.#response;
    this.#writer?.close();
    if (response.headersSent) {
      // The style has no event for a failure: a clean end would be a lie.
      response.destroy();
      return;
    }
    if (told.code === ErrorCode.REQUEST_TOO_LARGE) await this.#discardBody();
    if (response.destroyed) return;
    const body = Buffer.from(JSON.stringify(this.#route.errorBody(told, this.#toldId())));
    const type = { "content-type": "application/json; charset=utf-8" };
    const headers = { ...errorHeaders(told), ...type, "content-length": String(body.length) };
    this.whole({ status: told.status, headers }, body);
  }

  #toldId(): string {
    return this.#headers["x-request-id"] ?? "";
  }

  /**
   * Waits for the end of a body that is too long, and throws it away. Many clients read no reply before they have sent
   * all: were they answered and the connection closed meanwhile, they would see a broken pipe in place of the 413, and
   * their SDKs would send everything again. Bodies of unknown or enormous length are cut off.
   */
  async #discardBody(): Promise<void> {
    const request = this.#request;
    if (request.readableEnded || request.destroyed) return;
    const isBearable = Number(request.headers["content-length"]) <= discardedBodyBytesMax;
    if (!isBearable) {
      this.#headers["connection"] = "close";
      return;
    }
    // `close` comes for a client that disconnects meanwhile, too.
    await new Promise<void>((resolve) => {
      request.once("close", () => resolve());
      request.resume();
    });
  }

  readonly #onClose = (): void => {
    const { metrics, log, running } = this.#deps;
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
    log.info(
      { requestId, route, method, status, errorCode: this.#errorCode, durationMs },
      "request",
    );
  };
}

/* Reads the body of a request as bytes. */

/**
 * The body; empty where there is none. What it is read from is the socket's memory: it is copied.
 *
 * @throws GatewayError REQUEST_TOO_LARGE, before it is read where its length is known; INVALID_REQUEST where it was cut
 */
function readBody(request: IncomingMessage): Promise<Buffer> {
  const length = request.headers["content-length"];
  const announced = length === undefined ? undefined : Number(length);
  if (announced !== undefined && announced > bodyBytesMax) return Promise.reject(bodyTooLarge());
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    const stop = (): void => {
      request.off("data", onData);
      request.off("end", onEnd);
      request.off("error", onCut);
      request.off("close", onCut);
    };
    const onData = (piece: Buffer): void => {
      size += piece.length;
      pieces.push(piece);
      if (size <= bodyBytesMax) return;
      stop();
      request.pause();
      reject(bodyTooLarge());
    };
    const onEnd = (): void => {
      stop();
      if (announced !== undefined && size !== announced) reject(wrongLength());
      else resolve(Buffer.concat(pieces, size));
    };
    const onCut = (cause?: unknown): void => {
      stop();
      const text = "The HTTP request is malformed";
      reject(new GatewayError(ErrorCode.INVALID_REQUEST, text, { cause }));
    };
    request.on("data", onData);
    request.on("end", onEnd);
    request.on("error", onCut);
    request.on("close", onCut);
  });
}
