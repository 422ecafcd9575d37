/** One request on a direct route. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { IncomingMessage, ServerResponse } from "node:http";
import { runInAccountContext } from "../core/account-context.ts";
import { type Caller, gatewayStopping, type KeyCaller, resolveRequestId } from "../core/caller.ts";
import { type CancelSignal, CancelSource } from "../core/cancel-signal.ts";
import { emptyBuffer } from "../core/bytes.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { type SentReply, type Sink, type SinkHead, withinSettleWait } from "../core/sink.ts";
import { errorHeaders, toGatewayError } from "./errors.ts";
import { keyInUrlHeaders, refuseKey, refuseMissingKey } from "./key-refusal.ts";
import type { FacadeOptions } from "./options.ts";
import {
  readBody,
  replyBeforeBodyEnds,
  openForm,
  type ArrivingForm,
  type ReadBodyOptions,
} from "./request-body.ts";
import { headerText, type PresentedKey } from "./request-head.ts";
import { stallMs, StreamWriter } from "./stream-writer.ts";

/** The differences between routes. */
export interface RestRouteOptions {
  /** The route in metrics and logs. */
  readonly label: string;
  /** The response headers that carry the request id. */
  readonly requestIdHeaders: readonly string[];
  /** Reads the key of a request. Without a key the answer is 401. */
  keyOf(request: IncomingMessage): PresentedKey;
  /** Whether the request is a model call, which has a call record. */
  isCall(request: IncomingMessage): boolean;
  /** The path in the call record. */
  pathOf(request: IncomingMessage): string;
  /** The caller where the path itself is a credential, or none is needed; `undefined` where a key is required. */
  callerWithoutKey?(request: IncomingMessage): Caller | undefined;
  /** Checks the request's head before its body is read. @throws GatewayError */
  checkHead(request: IncomingMessage): void;
  /** Whether the body is a form, which the handler reads while it arrives. Default: bodies are read before. */
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
    "authenticate" | "onRefusedKey" | "metrics" | "log" | "isOpen" | "requireCapacity" | "bodies"
  > {
  /** The running calls, which are cancelled when the gateway stops. */
  readonly running: Set<RestCall>;
}

/** Bodies up to this length, in bytes, are written together with their head; a separate write costs 3 µs. */
const joinedBytesMax = 16 * 1024;

/**
 * A request from its head to the end of its reply. This one object holds the caller, is the call's cancellation
 * signal, and is the sink of its reply; nothing lies between socket and handler.
 */
export class RestCall extends CancelSource implements Sink<Buffer> {
  readonly requestId: string;
  /** Set once the key has been checked. */
  caller: Caller | undefined;
  /** Whether the handler records and logs the request. */
  isRecorded = false;

  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #route: RestRouteOptions;
  readonly #deps: RestCallDeps;
  readonly #startedMs = performance.now();
  /** Headers of every response. */
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

  /** The caller whose account is charged. @throws TypeError on a route that allows callers without a key */
  get keyCaller(): KeyCaller {
    if (this.caller?.kind === "key") return this.caller;
    throw new TypeError("a route without a key has no account to charge");
  }

  /** Serves the request. Never rejects. */
  async serve(): Promise<void> {
    try {
      this.caller = await this.#identify();
      this.#route.checkHead(this.#request);
      const { caller } = this;
      const { bodies } = this.#deps;
      const { form, body } = await this.#read({ bodies, caller });
      const { settled } = await runInAccountContext(this.caller, () =>
        this.#route.handle(this.#request, body, this, form),
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
    // Shorter bodies fit into the system's buffers, whether the client reads or not.
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

  /** Reads the body, or opens the form that its handler reads. @throws GatewayError */
  async #read(options: ReadBodyOptions): Promise<{ form?: ArrivingForm; body: Buffer }> {
    const [request, response] = [this.#request, this.#response];
    if (this.#route.isForm?.(request) !== true) {
      return { body: await readBody(request, response, options) };
    }
    return { form: openForm(request, response, options), body: emptyBuffer };
  }

  /** Identifies the caller by its key, before any byte of the body is read. @throws GatewayError */
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
    if (isInUrl) Object.assign(this.#headers, keyInUrlHeaders);
    if (known !== undefined) return known;
    if (key === undefined) throw refuseMissingKey(metrics);
    const found = await authenticate(key);
    if (found !== undefined && found.kind !== "refused") {
      // Checked before the body is read: an overloaded gateway must not spend more on it.
      if (route.isCall(request)) this.#deps.requireCapacity();
      return found;
    }
    const path = route.isCall(request) ? route.pathOf(request) : undefined;
    const { requestId } = this;
    throw refuseKey(this, found, { onRefusedKey, requestId, path });
  }

  /** Ends a streamed reply after settlement, so that the client finds its call record at once. */
  async #end(writer: StreamWriter, settled: Promise<void> | undefined): Promise<void> {
    if (settled !== undefined) await withinSettleWait(settled);
    writer.end();
    writer.close();
  }

  async #fail(error: unknown): Promise<void> {
    const shown = toGatewayError(error);
    const { requestId } = this;
    this.#errorCode = shown.meaning.word;
    if (shown.code === ErrorCode.INTERNAL_ERROR) {
      this.#deps.log.error({ requestId, err: shown.cause ?? shown }, "a request failed");
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
      this.whole({ status, headers: { ...headers, "content-length": String(body.length) } }, body);
      return;
    }
    const reply = { status, headers: { ...headers, ...this.#headers }, body };
    await replyBeforeBodyEnds(this.#request, response, { reply, bodies: this.#deps.bodies });
  }

  #echoedId(): string {
    return this.#headers["x-request-id"] ?? "";
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
