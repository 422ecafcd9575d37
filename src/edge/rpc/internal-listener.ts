/**
 * The listener for internal callers, and the standard services that only it has. One port serves
 * gRPC and Connect over cleartext HTTP/2, and HTTP/1.1 for Connect, probes and `/metrics`. HTTP/2
 * without TLS cannot be negotiated, so the first bytes of a connection decide.
 */
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server as HttpServer,
  type ServerResponse,
} from "node:http";
import {
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { ListenAddress } from "../../config/address.ts";
import { headerBytesMax, headMs as usualHeadMs, requestMs } from "../../core/limits.ts";
import { limitRest } from "../bodies/discarded-body.ts";
import { clientErrorListener, hostProblem, jsonType } from "../bodies/malformed-request.ts";
import { createRpcHandlers, type RouterOptions } from "./router.ts";

/** Answers a plain path such as `/healthz`; `undefined` means 404. */
type PlainPage = (path: string) => Promise<PlainAnswer | undefined>;

/** A plain-text answer. */
export interface PlainAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** A running listener. */
export interface InternalListener {
  /** Its address, for example `http://127.0.0.1:8081`. */
  readonly url: string;
  /** Requests clients of HTTP/1.1 to reconnect after their next reply. */
  announceStop(): void;
  /** Accepts no new connections; resolves when the last one has ended. */
  close(): Promise<void>;
  /** Closes all remaining connections. */
  destroy(): void;
}

/** The path of a Unix socket. */
interface SocketAddress {
  readonly path: string;
}

/** Answers a GET of a path that it serves, and returns true; false if it does not serve it. */
export type ServeFile = (
  request: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
) => boolean;

interface InternalListenerOptions extends RouterOptions {
  readonly address: ListenAddress | SocketAddress;
  /** Serves files that are streamed. Default: none. */
  readonly file?: ServeFile;
  readonly page: PlainPage;
  /** Maximum time a client may take to send the head of a request. Default {@link usualHeadMs}. */
  readonly headMs?: number;
}

/**
 * Opens the listener.
 *
 * @throws if the port is in use
 */
export async function openInternalListener(
  options: InternalListenerOptions,
): Promise<InternalListener> {
  const handler = createHandler(options);
  const { headMs = usualHeadMs } = options;
  const http1 = createHttp1(handler, headMs);
  const { http2, sessions } = createHttp2(handler, headMs);
  const onHttp2 = new WeakSet<Socket>();
  // Running HTTP/1.1 requests per connection: idle connections can be closed at once.
  const sockets = new Map<Socket, number>();
  let isClosing = false;
  let isAnnounced = false;
  const busy = (socket: Socket, change: number): void => {
    const running = (sockets.get(socket) ?? 0) + change;
    if (sockets.has(socket)) sockets.set(socket, running);
    if (isClosing && running === 0) socket.end();
  };
  // Before the handler, which may write the head.
  http1.prependListener("request", (request, response) => {
    const { socket } = request;
    if (isAnnounced) response.shouldKeepAlive = false;
    busy(socket, 1);
    response.on("close", () => {
      busy(socket, -1);
      limitRest(request);
    });
  });
  const server = createServer((socket) => {
    sockets.set(socket, 0);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    peek(socket, headMs, (isHttp2) => {
      if (isHttp2) onHttp2.add(socket);
      (isHttp2 ? http2 : http1).emit("connection", socket);
    });
  });
  await listen(server, options.address);
  return {
    url: urlOf(server, options.address),
    announceStop(): void {
      isAnnounced = true;
    },
    close: () =>
      new Promise((resolve) => {
        isClosing = true;
        void closed(server).then(resolve);
        // It listens to nothing; this ends its timer.
        http1.close();
        for (const session of sessions) session.close();
        for (const [socket, running] of sockets) {
          if (running === 0 && !onHttp2.has(socket)) socket.end();
        }
      }),
    destroy() {
      for (const session of sessions) session.destroy();
      for (const socket of sockets.keys()) socket.destroy();
    },
  };
}

/** Also its open connections. */
function createHttp2(handler: ReturnType<typeof createHandler>, headMs: number) {
  const http2 = createHttp2Server({ maxHeaderListPairs: 200 }, handler);
  const sessions = new Set<ServerHttp2Session>();
  http2.on("session", (session) => {
    sessions.add(session);
    // A client that has sent a request may be silent: its next request needs no new connection.
    const tooSlow = setTimeout(() => session.destroy(), headMs);
    session.once("stream", () => clearTimeout(tooSlow));
    session.on("close", () => {
      clearTimeout(tooSlow);
      sessions.delete(session);
    });
  });
  return { http2, sessions };
}

function createHttp1(handler: RequestListener, headMs: number): HttpServer {
  const times = { headersTimeout: headMs, requestTimeout: requestMs };
  const limits = { maxHeaderSize: headerBytesMax, ...times };
  // Node's check of hosts answers without a body.
  const options = { ...limits, connectionsCheckingInterval: 1_000, requireHostHeader: false };
  const server = createHttpServer(options, handler);
  // The code that reads the message sends "100 Continue", once its caller is identified.
  server.on("checkContinue", handler);
  server.on("clientError", clientErrorListener(malformedRpc));
  // Its connections come from another server. Node checks the time limits of listening servers
  // only.
  server.emit("listening");
  return server;
}

/** Serves RPCs, and plain pages on other paths. */
function createHandler(options: InternalListenerOptions) {
  const rpcs = createRpcHandlers(options);
  return (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): void => {
    const { method, url = "" } = request;
    const rpc = rpcs.get(url.split("?", 1)[0] ?? "");
    const type = request.headers["content-type"] ?? "";
    const problem = hostProblem(request);
    if (problem !== undefined) return refuseHost(request, response, problem);
    // Its end is in trailers, which HTTP/1.1 loses with the connection: clients would accept a
    // truncated reply as complete.
    if (request.httpVersionMajor === 1 && isGrpc(type)) return refuseRpc(response, grpcOverHttp1);
    if (rpc !== undefined) return void rpc(request, response);
    if (isGrpc(type)) return refuseGrpc(response, type);
    if (method === "POST") return refuseRpc(response, unknownRpc);
    if (method === "GET" && options.file?.(request, response)) return;
    void plainAnswer(options.page, method, url).then(({ status, contentType, body }) => {
      response.statusCode = status;
      response.setHeader("content-type", contentType);
      response.end(body);
    });
  };
}

/** Detects the HTTP/2 preface at the start of a connection without consuming bytes. */
function peek(socket: Socket, headMs: number, onKnown: (isHttp2: boolean) => void): void {
  const preface = "PRI * HTTP/2";
  let seen = Buffer.alloc(0);
  const tooSlow = setTimeout(() => socket.destroy(), headMs);
  socket.once("close", () => clearTimeout(tooSlow));
  const onReadable = (): void => {
    const bytes = socket.read() as Buffer | null;
    if (bytes === null) return;
    seen = Buffer.concat([seen, bytes]);
    const start = seen.toString("latin1", 0, preface.length);
    if (start.length < preface.length && preface.startsWith(start)) return;
    socket.off("readable", onReadable);
    clearTimeout(tooSlow);
    socket.unshift(seen);
    onKnown(start === preface);
  };
  socket.on("readable", onReadable);
}

/** Stops accepting connections; resolves when the last one has ended. */
function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

function listen(server: Server, address: ListenAddress | SocketAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function urlOf(server: Server, address: ListenAddress | SocketAddress): string {
  if ("path" in address) return `unix:${address.path}`;
  const { host } = address;
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** gRPC itself; gRPC-web needs no trailers. */
function isGrpc(contentType: string): boolean {
  return /^application\/grpc(?:[+; ]|$)/i.test(contentType);
}

interface RpcRefusal {
  readonly status: number;
  readonly message: string;
}

const grpcOverHttp1: RpcRefusal = {
  status: 415,
  message: "gRPC needs HTTP/2 (with prior knowledge): over HTTP/1.1 use Connect or gRPC-web",
};

const unknownRpc: RpcRefusal = {
  status: 404,
  message: "there is no such RPC: list them by server reflection, or see proto/",
};

/** Refuses a request with an error in the form of Connect. */
function refuseRpc(
  response: ServerResponse | Http2ServerResponse,
  { status, message }: RpcRefusal,
): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ code: "unimplemented", message }));
}

/**
 * HTTP/2 has a stream for each request; over HTTP/1.1 the bytes after such a head cannot be
 * trusted.
 */
function refuseHost(
  { httpVersionMajor }: IncomingMessage | Http2ServerRequest,
  response: ServerResponse | Http2ServerResponse,
  problem: string,
): void {
  response.statusCode = 400;
  response.setHeader("content-type", jsonType);
  if (httpVersionMajor === 1) response.setHeader("connection", "close");
  response.end(malformedRpc(problem));
}

/** The body of the answer to a request that is no lawful HTTP. */
function malformedRpc(message: string): string {
  return JSON.stringify({ code: "invalid_argument", message });
}

/** A reply that consists of trailers only: status 12, UNIMPLEMENTED. */
function refuseGrpc(response: ServerResponse | Http2ServerResponse, contentType: string): void {
  response.setHeader("content-type", contentType);
  response.setHeader("grpc-status", "12");
  response.setHeader("grpc-message", unknownRpc.message);
  response.end();
}

async function plainAnswer(
  page: PlainPage,
  method: string | undefined,
  url: string | undefined,
): Promise<PlainAnswer> {
  if (method !== "GET") return notFound;
  const path = (url ?? "").split("?")[0] ?? "";
  return (await page(path).catch(() => broken)) ?? notFound;
}

const broken: PlainAnswer = { status: 500, contentType: "text/plain", body: "failed\n" };

const notFound: PlainAnswer = {
  status: 404,
  contentType: "text/plain",
  body: "not found: this listener serves gRPC, Connect, /healthz, /readyz and /metrics\n",
};

/**
 * Opens a listener. If that fails, the error gives the reason in one line.
 *
 * @param variable the environment variable that sets the address
 */
export async function listenOn<Result>(
  address: ListenAddress,
  variable: string,
  open: (address: ListenAddress) => Promise<Result>,
): Promise<Result> {
  try {
    return await open(address);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    const reason = reasons[String(code)];
    if (reason === undefined) throw cause;
    const { host, port } = address;
    throw new Error(`cannot listen on ${host}:${port}: ${reason}; set ${variable}=HOST:PORT`, {
      cause,
    });
  }
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program uses the port",
  EACCES: "this user may not open that port",
  EADDRNOTAVAIL: "this machine has no such address",
};
