/** Serves the contract over the network, with the same services on every listener. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import {
  Code,
  type ContextValues,
  createConnectRouter,
  createContextValues,
  type Interceptor,
} from "@connectrpc/connect";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { createAsyncIterable, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { bodyBytesMax } from "../../core/limits.ts";
import { anonymous, callerKey } from "../../core/caller.ts";
import { ErrorCode, GatewayError, toRpcError } from "../../core/errors.ts";
import type { Service } from "../../core/contract-rules.ts";
import { type BodyBudget, checkBodySize } from "../bodies/body-budget.ts";
import type { RequestGate } from "./gate.ts";
import { isUnreadable } from "./interceptors.ts";

/** The RPC options of a listener. */
export interface RouterOptions {
  readonly services: readonly Service[];
  readonly interceptors: readonly Interceptor[];
  /** Identifies callers before their messages are read. */
  readonly requestGate: RequestGate;
  /** The budget of messages that are not complete. */
  readonly bodies: BodyBudget;
  /** Whether gRPC itself is served. It needs HTTP/2. Default true. */
  readonly grpc?: boolean;
  /** Maximum message size in bytes. Default: the largest request body and the fields around it. */
  readonly messageBytesMax?: number;
  /** Aborted when running RPCs must end. */
  readonly shutdownSignal: AbortSignal;
}

type NodeRequest = IncomingMessage | Http2ServerRequest;
type NodeResponse = ServerResponse | Http2ServerResponse;

/** Handles the requests for one RPC. Never rejects. */
export type HandleRpc = (
  request: NodeRequest,
  response: NodeResponse,
  values?: ContextValues,
) => Promise<void>;

/** Creates the handlers of a listener, by path. */
export function createRpcHandlers(options: RouterOptions): ReadonlyMap<string, HandleRpc> {
  const { services, interceptors, requestGate, bodies, shutdownSignal, grpc = true } = options;
  const messageBytesMax = options.messageBytesMax ?? bodyBytesMax + 1024 * 1024;
  const router = createConnectRouter({
    acceptCompression: [compressionGzip, compressionBrotli],
    readMaxBytes: messageBytesMax,
    interceptors: [...interceptors],
    requestGate,
    shutdownSignal,
    grpc,
  });
  for (const { service, implementation } of services) router.service(service, implementation);
  const handlers = router.handlers.map((handle): [string, HandleRpc] => {
    return [
      handle.requestPath,
      async (request, response, values = createContextValues()) => {
        try {
          // HTTP/1.0 has no such header, and Connect builds a URL from it. Other requests without
          // it were refused.
          request.headers.host ??= "localhost";
          const universal = universalRequestFromNodeRequest(request, response, undefined, values);
          const body = readRequest(request, response, { values, bodies });
          response.once("close", () => passRest(request));
          const reply = await handle({ ...universal, body });
          await universalResponseToNodeResponse(await blameMessage(reply), response);
        } catch {
          // The connection broke while the reply was written, so no error can be sent.
          response.destroy();
        }
      },
    ];
  });
  return new Map(handlers);
}

/**
 * Discards the remaining bytes of a request that was answered before it was read completely, for
 * example because it was longer than its message. Otherwise the next request on the connection
 * would never be read. HTTP/2 has a stream for each request.
 */
function passRest(request: NodeRequest): void {
  if (request.httpVersionMajor !== 1 || request.readableEnded) return;
  // An iterator that waits for more bytes prevents the request from flowing.
  request.removeAllListeners("readable");
  request.on("data", () => {});
  request.resume();
}

/** Options of {@link readRequest}. */
interface ReadRequestOptions {
  /** With the caller, once the gate has let the request pass. */
  readonly values: ContextValues;
  readonly bodies: BodyBudget;
}

/**
 * The pieces of a request. Nothing is read before the first piece is requested. Clients of the
 * contract send one message; all messages of a reflection stream count as one.
 *
 * @throws ConnectError
 */
async function* readRequest(
  request: NodeRequest,
  response: NodeResponse,
  { values, bodies }: ReadRequestOptions,
): AsyncGenerator<Uint8Array> {
  const caller = values.get(callerKey) ?? anonymous;
  const { "content-length": announced, expect } = request.headers;
  const body = bodies.open(caller);
  let received = 0;
  let isOver = false;
  // The reader may stop after its message, while this generator is at a piece.
  let stop: (end: { readonly done: true; readonly value: undefined }) => void = () => {};
  response.once("close", () => {
    isOver = true;
    body.close();
    stop({ done: true, value: undefined });
  });
  // Destroying the request would close its connection, and lose the reply.
  const pieces = request.iterator({ destroyOnReturn: false });
  try {
    checkBodySize(Number(announced ?? 0), caller);
    // Node has sent it already for HTTP/2.
    if (request.httpVersionMajor === 1 && expect !== undefined) response.writeContinue();
    for (;;) {
      const { done, value } = await new Promise<IteratorResult<unknown>>((resolve, reject) => {
        stop = resolve;
        pieces.next().then(resolve, reject);
        if (isOver) resolve({ done: true, value: undefined });
      });
      if (done === true || isOver) return;
      const piece = value as Uint8Array;
      received += piece.length;
      // Most messages are complete with their first piece, and never count.
      if (String(received) !== announced) body.keep(piece.length);
      yield piece;
    }
  } catch (error) {
    throw toRpcError(error instanceof GatewayError ? error : cutOff(error));
  } finally {
    body.close();
  }
}

/** A client that disconnects before its message has ended is not a failure of the gateway. */
function cutOff(cause: unknown): GatewayError {
  const text = "The request ended before its message did; send it again";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { cause });
}

/**
 * Reports an unreadable message as the client's error if no interceptor saw it: in the head or in
 * the trailers.
 */
async function blameMessage(reply: UniversalServerResponse): Promise<UniversalServerResponse> {
  const { status, body, trailer } = reply;
  if (trailer?.get("grpc-status") === String(Code.Internal)) {
    const message = decodeURIComponent(trailer.get("grpc-message") ?? "");
    if (isUnreadable(message)) trailer.set("grpc-status", String(Code.InvalidArgument));
  }
  if (status !== 500 || body == null || !(Symbol.asyncIterator in body)) return reply;
  const written = Buffer.concat(await Array.fromAsync(body));
  const error = JSON.parse(written.toString()) as { code: string; message?: string };
  if (!isUnreadable(error.message ?? "")) return { ...reply, body: createAsyncIterable([written]) };
  const changed = Buffer.from(JSON.stringify({ ...error, code: "invalid_argument" }));
  reply.header?.set("content-length", String(changed.length));
  return { ...reply, status: 400, body: createAsyncIterable([changed]) };
}
