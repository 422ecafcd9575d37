/**
 * The WebSocket edge: `GET /v1/responses` with an upgrade. A connection carries any number of
 * requests. Each is a separate call, with separate admission, hold and settlement, as if it were a
 * POST.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { ExchangeRequestSchema } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { bodyBytesMax } from "../../core/limits.ts";
import { webSocketCheckMs, webSocketMax } from "../../config/web-socket-limits.ts";
import { gatewayStopping, type KeyCaller, resolveRequestId } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { InertReply } from "../inert-reply.ts";
import { dialects, textDialects } from "../../dialect/index.ts";
import { routingHeaders } from "../../dialect/dialect.ts";
import { errorHeaders, toGatewayError } from "../rest/errors.ts";
import { refuseKey, refuseMissingKey } from "../rest/key-refusal.ts";
import type { FacadeOptions, HandleWire } from "../rest/options.ts";
import type { Upgrades } from "../rest/http-server.ts";
import { headerText, platformKeyOf, readWireRequest } from "../rest/request-parts.ts";
import type { RestRoute } from "../rest/route-table.ts";
import { SocketConnection } from "./connection.ts";
import { ConversationMemory } from "./kept-conversations.ts";

/** Maximum time clients may take to answer the close when the server ends. */
const cutMs = 1_000;

/** The connections of a listener. */
export class WebSockets implements Upgrades {
  readonly #options: FacadeOptions;
  /** By path. */
  readonly #routes: ReadonlyMap<string, { readonly route: RestRoute; readonly handle: HandleWire }>;
  readonly #connections = new Set<SocketConnection>();
  readonly #memory = new ConversationMemory();
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: bodyBytesMax,
    perMessageDeflate: false,
  });
  readonly #requestIds = new WeakMap<IncomingMessage, string>();
  #timer: NodeJS.Timeout | undefined;
  #onEmpty: (() => void) | undefined;

  constructor(routes: readonly RestRoute[], options: FacadeOptions) {
    this.#options = options;
    this.#routes = new Map(
      routes.flatMap((route) => {
        const handle = options.direct.wire.get(route.method);
        return route.route.webSocket && handle ? [[route.url, { route, handle }] as const] : [];
      }),
    );
    this.#server.on("headers", (headers, request) => {
      headers.push(`x-request-id: ${this.#requestIdOf(request)}`);
    });
    // Without a listener the library answers in plain text.
    this.#server.on("wsClientError", (error, socket, request) => {
      const text = `The WebSocket handshake is invalid: ${error.message}`;
      this.#refuse(request, socket, new GatewayError(ErrorCode.INVALID_REQUEST, text));
    });
    options.metrics.gauge("uas_websocket_connections", () => this.#connections.size);
    options.draining?.addEventListener("abort", () => {
      const isReplaced = options.draining?.reason === "replacement";
      for (const each of this.#connections) each.announceStop(isReplaced);
    });
    options.stopping.addEventListener("abort", () => {
      for (const each of this.#connections) each.stop(options.stopping.reason);
    });
  }

  accepts({ method, headers, url = "" }: IncomingMessage): boolean {
    const [path = ""] = url.split("?", 1);
    return (
      headers.upgrade?.toLowerCase() === "websocket" && method === "GET" && this.#routes.has(path)
    );
  }

  onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    void this.#open(request, socket, head);
  }

  /** Closes all connections; after a while it cuts them. */
  async close(): Promise<void> {
    for (const each of this.#connections) each.announceStop(false);
    if (this.#connections.size > 0) await new Promise<void>((resolve) => this.#cutLater(resolve));
    clearInterval(this.#timer);
  }

  #cutLater(onClosed: () => void): void {
    const cut = setTimeout(() => {
      for (const each of this.#connections) each.destroy();
    }, cutMs);
    this.#onEmpty = () => {
      clearTimeout(cut);
      onClosed();
    };
  }

  async #open(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const ignore = (): void => {};
    socket.on("error", ignore);
    try {
      if (!this.#options.isOpen() || this.#options.draining?.aborted === true)
        throw gatewayStopping();
      const caller = await this.#identify(request);
      this.#requireCapacity(caller);
      socket.off("error", ignore);
      this.#server.handleUpgrade(request, socket, head, (webSocket) => {
        const requestId = this.#requestIdOf(request);
        this.#add(
          new SocketConnection({ webSocket, request, caller, requestId }, this.#deps),
          webSocket,
        );
        this.#options.metrics.countRequest(this.#pathOf(request), 101);
      });
    } catch (error) {
      this.#refuse(request, socket, toGatewayError(error));
    }
  }

  get #deps() {
    const { log, requests, isOpen, requireCapacity, bodies } = this.#options;
    return {
      log,
      requests,
      isOpen,
      requireCapacity,
      bodies,
      memory: this.#memory,
      identify: (request: IncomingMessage) => this.#identify(request),
      serve: this.#serve,
    };
  }

  readonly #serve: ConstructorParameters<typeof SocketConnection>[1]["serve"] = (
    request,
    body,
    turn,
  ) => {
    const found = this.#routes.get(this.#pathOf(request));
    if (found === undefined) throw new Error("a connection without a route");
    const { route, handle } = found;
    const forwarded = new Set([
      ...(textDialects.get(route.dialect)?.forwardedHeaders ?? []),
      ...routingHeaders,
    ]);
    const fields = readWireRequest(request, body, { route, forwarded });
    const { headers } = request;
    return handle(
      {
        $typeName: ExchangeRequestSchema.typeName,
        ...fields,
        alwaysStream: true,
        headers: withoutSocketBeta(fields.headers),
        strict: headers["x-uas-strict"] === "true",
        reportCost: headers["x-uas-cost"] === "true",
        mediaOperation: route.route.mediaOperation,
      },
      turn,
    );
  };

  #add(
    connection: SocketConnection,
    webSocket: { once(type: "close", listener: () => void): unknown },
  ): void {
    this.#connections.add(connection);
    webSocket.once("close", () => {
      this.#connections.delete(connection);
      if (this.#connections.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.#onEmpty?.();
    });
    this.#timer ??= setInterval(this.#check, webSocketCheckMs).unref();
    if (this.#options.draining?.aborted === true) connection.announceStop(false);
  }

  readonly #check = (): void => {
    const nowMs = performance.now();
    for (const each of this.#connections) void each.check(nowMs);
  };

  async #identify(request: IncomingMessage): Promise<KeyCaller> {
    const { authenticate, onRefusedKey, metrics } = this.#options;
    const { key } = platformKeyOf(request);
    if (key === undefined) throw refuseMissingKey(metrics);
    const found = await authenticate(key);
    if (found?.kind === "key") return found;
    const requestId = this.#requestIdOf(request);
    const refused = found?.kind === "refused" ? found : undefined;
    const path = this.#pathOf(request);
    throw refuseKey({ isRecorded: false }, refused, { onRefusedKey, requestId, path });
  }

  #requireCapacity({ keyId }: KeyCaller): void {
    const { connections, connectionsPerKey } = webSocketMax;
    const own = [...this.#connections].filter((each) => each.keyId === keyId).length;
    if (own >= connectionsPerKey) {
      const text = `An API key has at most ${connectionsPerKey} WebSockets at once: close one of them, or use POST`;
      throw new GatewayError(ErrorCode.RATE_LIMIT_EXCEEDED, text);
    }
    if (this.#connections.size < connections) return;
    const text = `The gateway has its maximum of ${connections} WebSockets: use POST`;
    throw new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, text);
  }

  #refuse(request: IncomingMessage, socket: Duplex, error: GatewayError): void {
    const { requests, metrics } = this.#options;
    const requestId = this.#requestIdOf(request);
    const route = this.#pathOf(request);
    const { status } = error;
    const dialect = this.#routes.get(route)?.route.dialect;
    if (dialect === undefined) throw new Error("a refusal without a route");
    const body = JSON.stringify(dialects[dialect].errorBody(error, requestId));
    const response = new InertReply(request);
    response.assignSocket(socket as Socket);
    response.shouldKeepAlive = false;
    response.on("finish", () => socket.end());
    response.writeHead(status, {
      ...errorHeaders(error),
      "x-request-id": requestId,
      "content-type": "application/json; charset=utf-8",
      "content-length": Buffer.byteLength(body),
    });
    response.end(body);
    metrics.countRequest(route, status);
    requests.ended({ requestId, route, method: "GET", status, errorCode: error.meaning.word });
  }

  #requestIdOf(request: IncomingMessage): string {
    let id = this.#requestIds.get(request);
    if (id === undefined) {
      const { headers } = request;
      id = resolveRequestId(headerText(headers["x-request-id"]), headerText(headers["request-id"]));
      this.#requestIds.set(request, id);
    }
    return id;
  }

  #pathOf({ url = "" }: IncomingMessage): string {
    return url.split("?", 1)[0] ?? "";
  }
}

/**
 * The headers without the beta of WebSockets, which means nothing to a vendor that is called by
 * POST.
 */
function withoutSocketBeta(headers: Record<string, string>): Record<string, string> {
  const { "openai-beta": beta, ...others } = headers;
  const rest = (beta ?? "")
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "" && !each.startsWith("responses_websockets"))
    .join(",");
  return rest === "" ? others : { ...others, "openai-beta": rest };
}
