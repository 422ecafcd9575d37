/**
 * One WebSocket: reads requests, serves the requests of each stream in order, and closes after they
 * end.
 */
import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";
import { streamBufferBytesMax } from "../../core/limits.ts";
import { webSocketCloseMs, webSocketMax } from "../../config/web-socket-limits.ts";
import { gatewayStopping, type KeyCaller } from "../../core/caller.ts";
import { runInAccountContext } from "../../core/current-account.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { ArrivingBody } from "../bodies/body-budget.ts";
import { withinSettleWait } from "../../core/sink.ts";
import { newId } from "../../core/uuid.ts";
import { preparedResponse } from "../../dialect/responses/response-json.ts";
import { toGatewayError } from "../rest/errors.ts";
import type { DirectCall, FacadeOptions } from "../rest/options.ts";
import { stallMs } from "../rest/rest-call.ts";
import { errorMessage, SocketTurn } from "./turn.ts";
import { type ConversationMemory, LastConversation } from "./kept-conversations.ts";
import { type SocketRequest, readMessage, continued, inputJson } from "./client-messages.ts";

/** Dependencies of a connection that its server provides. */
export interface ConnectionDeps
  extends Pick<FacadeOptions, "log" | "requests" | "isOpen" | "requireCapacity" | "bodies"> {
  readonly memory: ConversationMemory;
  /**
   * Checks the key of the connection again.
   *
   * @throws GatewayError if it is no longer accepted
   */
  identify(request: IncomingMessage): Promise<KeyCaller>;
  /** Serves a request, given its body. */
  serve(request: IncomingMessage, body: Buffer, turn: DirectCall): ReturnType<ServeTurn>;
}

type ServeTurn = (call: DirectCall) => Promise<{ readonly settled?: Promise<void> }>;

/** Constructor parts of a connection. */
export interface ConnectionParts {
  readonly webSocket: WebSocket;
  /** The handshake. */
  readonly request: IncomingMessage;
  readonly caller: KeyCaller;
  /** The request id of all its calls. */
  readonly requestId: string;
}

/** Close codes of RFC 6455 and its registry. */
const codes = {
  goingAway: 1001,
  unsupported: 1003,
  refused: 1008,
  failed: 1011,
  restart: 1012,
  tryLater: 1013,
} as const;

/** The requests of one stream. */
interface Stream {
  readonly id: string;
  readonly waiting: SocketRequest[];
  readonly last: LastConversation;
  running: SocketTurn | "prepares" | undefined;
}

/** A connection, from its handshake to its close. */
export class SocketConnection {
  readonly #parts: ConnectionParts;
  readonly #deps: ConnectionDeps;
  readonly #streams = new Map<string, Stream>();
  readonly #openedMs = performance.now();
  /** Bytes received since the last complete message. */
  readonly #arriving: ArrivingBody;
  #isAlive = true;
  /** Cuts a connection whose client does not answer the close. */
  #cut: NodeJS.Timeout | undefined;
  #requests = 0;
  #served = 0;
  /** Code and reason for the close, once no turn is running. */
  #ending: { readonly code: number; readonly reason: string } | undefined;

  constructor(parts: ConnectionParts, deps: ConnectionDeps) {
    this.#parts = parts;
    this.#deps = deps;
    const { webSocket, request } = parts;
    webSocket.on("message", (data: Buffer, isBinary) => this.#onMessage(data, isBinary));
    this.#arriving = deps.bodies.open(parts.caller);
    webSocket.on("pong", this.#onAlive);
    webSocket.on("ping", this.#onAlive);
    webSocket.on("close", this.#onClose);
    // The close event that follows carries the details.
    webSocket.on("error", () => {});
    // Before the socket's listener, which may complete the message.
    request.socket.prependListener("data", this.#onBytes);
  }

  get keyId(): string {
    return this.#parts.caller.keyId;
  }

  /**
   * Checks that the peer is alive, the key is valid, and the connection is not too old. Never
   * rejects.
   */
  async check(nowMs: number): Promise<void> {
    const { webSocket, request, requestId } = this.#parts;
    if (!this.#isAlive) {
      webSocket.terminate();
      return;
    }
    this.#isAlive = false;
    webSocket.ping();
    if (nowMs - this.#openedMs > webSocketMax.ageMs) {
      this.end(codes.goingAway, "the connection is 60 minutes old: open another one", tooOld());
    }
    try {
      await this.#deps.identify(request);
    } catch (error) {
      const { code } = toGatewayError(error);
      // Without its database, the gateway cannot decide.
      if (code === ErrorCode.UNAUTHENTICATED)
        this.#close(codes.refused, "the API key is no longer accepted");
      else this.#deps.log.warn({ requestId, err: error }, "a WebSocket's key could not be checked");
    }
  }

  /**
   * Ends the connection once running requests have ended; waiting requests are not served.
   *
   * @param error sent before the close
   */
  end(code: number, reason: string, error?: GatewayError): void {
    if (this.#ending !== undefined) return;
    this.#ending = { code, reason };
    for (const { waiting } of this.#streams.values()) {
      this.#requests -= waiting.length;
      waiting.length = 0;
    }
    if (error !== undefined && this.#requests === 0) this.#sendError(error, "");
    this.#closeIfIdle();
  }

  /**
   * Ends it because this process stops.
   *
   * @param isReplaced whether another process serves the same address
   */
  announceStop(isReplaced: boolean): void {
    this.end(
      isReplaced ? codes.restart : codes.goingAway,
      "the gateway is stopping: connect again",
    );
  }

  /** Cancels running requests, then ends the connection. */
  stop(reason: unknown): void {
    this.announceStop(false);
    this.#cancel(reason);
  }

  /** Cuts the connection. */
  destroy(): void {
    this.#parts.webSocket.terminate();
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    this.#arriving.close();
    this.#isAlive = true;
    if (this.#ending !== undefined) return;
    if (isBinary) {
      this.#close(codes.unsupported, "send text messages");
      return;
    }
    let streamId = "";
    try {
      const request = readMessage(data);
      streamId = request.streamId;
      this.#queue(request);
    } catch (error) {
      this.#sendError(toGatewayError(error), streamId);
    }
  }

  #queue(request: SocketRequest): void {
    if (this.#requests >= webSocketMax.requests) throw tooManyRequests();
    const { streamId: id } = request;
    let stream = this.#streams.get(id);
    if (stream === undefined) {
      const isNamed = id !== "";
      const named = this.#streams.size - (this.#streams.has("") ? 1 : 0);
      if (isNamed && named >= webSocketMax.streams) throw tooManyStreams();
      const last = new LastConversation(this.#deps.memory);
      stream = { id, waiting: [], last, running: undefined };
      this.#streams.set(id, stream);
    }
    this.#requests++;
    stream.waiting.push(request);
    if (stream.running === undefined) void this.#serveAll(stream);
  }

  /** Serves the requests of a stream, one after the other. Never rejects. */
  async #serveAll(stream: Stream): Promise<void> {
    stream.running = "prepares";
    for (let next = stream.waiting.shift(); next !== undefined; next = stream.waiting.shift()) {
      await this.#serve(stream, next);
      stream.running = "prepares";
      this.#requests--;
      this.#served++;
    }
    stream.running = undefined;
    this.#closeIfIdle();
  }

  async #serve(
    stream: Stream,
    { previousId, isGenerated, isStored, body }: SocketRequest,
  ): Promise<void> {
    const { request, requestId } = this.#parts;
    const { isOpen, requireCapacity, requests } = this.#deps;
    let turn: SocketTurn | undefined;
    try {
      // The key may have been disabled since the handshake.
      const caller = await this.#deps.identify(request);
      if (!isOpen()) throw gatewayStopping();
      const items = stream.last.find(previousId);
      const whole = items === undefined ? body : continued(body, items);
      if (!isGenerated) {
        this.#prepare(stream, whole);
        return;
      }
      requireCapacity();
      const repeated = items === undefined ? "" : previousId;
      const streamId = stream.id;
      turn = new SocketTurn({ messages: this, caller, requestId, streamId, previousId: repeated });
      stream.running = turn;
      if (this.#isClosed) turn.cancel();
      const { settled } = await runInAccountContext(caller, () =>
        this.#deps.serve(request, whole, turn as SocketTurn),
      );
      if (settled !== undefined) await withinSettleWait(settled);
      if (turn.ended === undefined) stream.last.forget();
      else if (!isStored)
        stream.last.keep(turn.ended.id, joined(inputJson(whole), turn.ended.items));
    } catch (error) {
      const shown = toGatewayError(error);
      if (shown.code === ErrorCode.INTERNAL_ERROR) {
        requests.failed(requestId, shown);
      }
      stream.last.forget();
      this.#sendError(shown, stream.id);
      if (shown.code === ErrorCode.UNAUTHENTICATED) {
        this.#close(codes.refused, "the API key is no longer accepted");
      }
    }
  }

  /** Answers a request that calls no model: the next one continues it. */
  #prepare(stream: Stream, body: Buffer): void {
    const id = `resp_${newId().replaceAll("-", "")}`;
    const { created, completed } = preparedResponse(body, {
      id,
      created: Math.floor(Date.now() / 1_000),
    });
    stream.last.keep(id, inputJson(body));
    for (const [at, response] of [created, completed].entries()) {
      const type = at === 0 ? "response.created" : "response.completed";
      const named = stream.id === "" ? "" : `"stream_id":${JSON.stringify(stream.id)},`;
      void this.send(`{${named}"type":"${type}","sequence_number":${at},"response":${response}}`);
    }
  }

  /** @see Messages */
  send(text: string): Promise<void> | undefined {
    const { webSocket } = this.#parts;
    if (webSocket.readyState !== webSocket.OPEN) return undefined;
    if (webSocket.bufferedAmount < streamBufferBytesMax) {
      webSocket.send(text);
      return undefined;
    }
    return new Promise((resolve) => {
      const stalled = setTimeout(() => webSocket.terminate(), stallMs);
      webSocket.send(text, () => {
        clearTimeout(stalled);
        resolve();
      });
    });
  }

  #sendError(error: GatewayError, streamId: string): void {
    const message = errorMessage(error, this.#parts.requestId);
    const named = streamId === "" ? "" : `"stream_id":${JSON.stringify(streamId)},`;
    void this.send(`{${named}${message.slice(1)}`);
  }

  #closeIfIdle(): void {
    if (this.#ending === undefined || this.#requests > 0) return;
    this.#close(this.#ending.code, this.#ending.reason);
  }

  #close(code: number, reason: string): void {
    this.#ending ??= { code, reason };
    const { webSocket } = this.#parts;
    webSocket.close(code, reason);
    this.#cut ??= setTimeout(() => webSocket.terminate(), webSocketCloseMs).unref();
  }

  get #isClosed(): boolean {
    const { webSocket } = this.#parts;
    return webSocket.readyState === webSocket.CLOSED;
  }

  #cancel(reason?: unknown): void {
    for (const { running } of this.#streams.values()) {
      if (running instanceof SocketTurn) running.cancel(reason);
    }
  }

  readonly #onAlive = (): void => {
    this.#isAlive = true;
  };

  /**
   * Counts received bytes until the library has a complete message. Limits the length and the
   * fragments of a message.
   */
  readonly #onBytes = (piece: Buffer): void => {
    try {
      this.#arriving.keep(piece.length);
    } catch (error) {
      this.#sendError(toGatewayError(error), "");
      this.#close(codes.tryLater, "the message is not accepted");
      // The library would otherwise buffer all further data until the client answers the close.
      this.#parts.webSocket.pause();
    }
  };

  readonly #onClose = (code: number): void => {
    const { request, requestId } = this.#parts;
    request.socket.off("data", this.#onBytes);
    this.#arriving.close();
    clearTimeout(this.#cut);
    this.#ending ??= { code, reason: "" };
    this.#cancel();
    for (const { last, waiting } of this.#streams.values()) {
      this.#requests -= waiting.length;
      waiting.length = 0;
      last.forget();
    }
    const durationMs = Math.round(performance.now() - this.#openedMs);
    const requests = this.#served;
    this.#deps.log.info({ requestId, code, requests, durationMs }, "a WebSocket was closed");
  };
}

function joined(...lists: readonly string[]): string {
  return lists.filter((list) => list !== "").join(",");
}

function tooManyRequests(): GatewayError {
  return new GatewayError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    `A connection serves ${webSocketMax.requests} requests at once: send this one when another has ended`,
  );
}

function tooManyStreams(): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `A connection has at most ${webSocketMax.streams} named streams: use one of them again, or another connection`,
    { param: "stream_id" },
  );
}

function tooOld(): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "The connection is 60 minutes old: open another one, and continue there",
    { details: { error_code: "websocket_connection_limit_reached" } },
  );
}
