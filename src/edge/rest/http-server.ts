/**
 * The HTTP server of the public listener. It handles what Node.js leaves open or answers without a
 * body: time limits, requests that violate HTTP, `Expect`, and clients that close their sending
 * side only.
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { headerBytesMax, headMs, requestMs } from "../../core/limits.ts";
import { limitRest } from "../bodies/discarded-body.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { InertReply } from "../inert-reply.ts";
import { dialects } from "../../dialect/index.ts";
import {
  clientErrorListener,
  hostProblem,
  jsonType,
  type PlainError,
  runningOn,
  wholeReply,
} from "../bodies/malformed-request.ts";

/**
 * Time for which an idle connection is kept for further requests. Longer than load balancers and
 * SDKs keep it, so that they close it first and never send a request to a closing connection.
 */
const keepAliveMs = 72_000;

/** Interval between checks of the time limits. */
const checkMs = 1_000;

/** Browsers use https for a year once they have received it. */
const onlyHttps = "max-age=31536000";

/** The HTTP server's side of WebSockets. */
export interface Upgrades {
  /**
   * Whether a request with an upgrade becomes a WebSocket. All others are served as if they had
   * none.
   */
  accepts(request: IncomingMessage): boolean;
  /** Takes over the socket of an upgrade request. */
  onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/**
 * Creates the server.
 *
 * @param listener receives every valid HTTP request
 * @param upgrades takes over the connections of requests that become WebSockets
 * @param options `publicUrl` and `consoleUrl`: with https, replies restrict browsers to https
 */
export function createHttpServer(
  listener: RequestListener,
  upgrades: Upgrades,
  {
    publicUrl,
    consoleUrl,
  }: {
    readonly publicUrl?: string | undefined;
    readonly consoleUrl?: string | undefined;
  } = {},
): Server {
  const isHttps = [publicUrl, consoleUrl].some((url) => url?.startsWith("https:"));
  const options = {
    ServerResponse: InertReply,
    maxHeaderSize: headerBytesMax,
    headersTimeout: headMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: checkMs,
    // Node's check answers without a body.
    requireHostHeader: false,
    shouldUpgradeCallback: (request: IncomingMessage) => upgrades.accepts(request),
  };
  // One function for all responses: cheaper than a closure per response.
  const onClose = function (this: ServerResponse): void {
    limitRest(this.req);
  };
  const serve: RequestListener = (request, response) => {
    response.on("close", onClose);
    if (isHttps) response.setHeader("strict-transport-security", onlyHttps);
    const problem = hostProblem(request);
    if (problem === undefined) listener(request, response);
    else sendPlain(response, { status: 400, message: problem });
  };
  const server = createServer(options, serve);
  // Without a listener Node sends "100 Continue" before the head is checked. The code that reads
  // the body sends it.
  server.on("checkContinue", serve);
  server.on("checkExpectation", (_request, response: ServerResponse) => {
    const message = "The header `expect` may only be 100-continue: leave it out";
    sendPlain(response, { status: 417, message });
  });
  server.on("upgrade", (request, socket, head) => {
    const problem = hostProblem(request);
    if (problem === undefined) return upgrades.onUpgrade(request, socket, head);
    // Node no longer listens: the error of a disconnected client would end the process.
    socket.on("error", () => socket.destroy());
    socket.end(wholeReply(400, plainError(problem)));
  });
  allowHalfOpen(server);
  return server;
}

/**
 * Lets clients close their sending side and still receive their reply; by default Node.js ends the
 * connection. A client that has closed both sides looks the same until two packets were sent to it:
 * its system rejects the first, and the second reports that. Therefore such connections are probed,
 * and a client that is gone counts as disconnected.
 */
function allowHalfOpen(server: Server): void {
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  server.on("connection", (socket: Socket) => socket.on("end", () => probe(socket, probePauses)));
}

/** The event of a response whose client has closed its sending side; see {@link probe}. */
export const halfClosed = "halfClosed";

/** Pauses between probes in milliseconds; the last one is repeated. */
const probePauses: readonly number[] = [50, 1_000, 10_000];

/** Sends bytes that the client ignores: an interim reply, or filler in a stream. */
function probe(socket: Socket, [pauseMs = 0, ...later]: readonly number[]): void {
  const response = runningOn(socket);
  if (socket.destroyed || response === undefined || response.writableEnded) return;
  const isHead = !response.headersSent && response.req.httpVersion !== "1.0";
  if (isHead) response.writeProcessing();
  else if (!response.emit(halfClosed)) {
    // No probe can be sent, so it would be unknown whether the client still reads.
    response.destroy();
    return;
  }
  setTimeout(probe, pauseMs, socket, later.length > 0 ? later : [pauseMs]).unref();
}

/** Answers requests that Node's HTTP parser refuses. */
export const clientErrorHandler = clientErrorListener(plainError);

/** Refuses a request before its style is known, and closes the connection. */
function sendPlain(response: ServerResponse, { status, message }: PlainError): void {
  const body = plainError(message);
  const length = Buffer.byteLength(body);
  const headers = { "content-type": jsonType, "content-length": length, connection: "close" };
  response.writeHead(status, headers).end(body);
}

/** An error in the style of requests whose style is unknown. */
function plainError(message: string): string {
  const error = new GatewayError(ErrorCode.INVALID_REQUEST, message);
  return JSON.stringify(dialects[Dialect.CHAT_COMPLETIONS].errorBody(error, ""));
}
