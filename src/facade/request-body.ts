/** Reads and discards request bodies. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { bodyBytesMax, discardedBodyBytesMax } from "../config/limits.ts";
import { uploadMax } from "../config/upload-limits.ts";
import type { Caller } from "../core/caller.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { UnfinishedBodies } from "../core/unfinished-bodies.ts";
import { bodyTooLarge, formTooLarge, wrongLength } from "./errors.ts";

/** Options of {@link readBody}. */
export interface ReadBodyOptions {
  readonly bodies: UnfinishedBodies;
  /** Whose budgets the body uses while it is not complete; `undefined`: only those of the process. */
  readonly caller: Caller | undefined;
}

/**
 * Reads a whole body; empty where there is none. The bytes are copied, since the pieces are the socket's own
 * memory. A client that asked whether to send it (`expect: 100-continue`) is told so here, once nothing else can
 * refuse the request.
 *
 * @throws GatewayError REQUEST_TOO_LARGE, before reading where the length is known; INVALID_REQUEST where the body
 * is cut off or too slow; RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE over a budget
 */
export function readBody(
  request: IncomingMessage,
  response: ServerResponse,
  { bodies, caller }: ReadBodyOptions,
): Promise<Buffer> {
  const length = request.headers["content-length"];
  const announced = length === undefined ? undefined : Number(length);
  if (announced !== undefined && announced > bodyBytesMax) return Promise.reject(bodyTooLarge());
  if (isWaiting(request)) {
    response.writeContinue();
    delete request.headers.expect;
  }
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    const stop = (): void => {
      body.close();
      request.off("data", onData);
      request.off("end", onEnd);
      request.off("error", onCut);
      request.off("close", onCut);
    };
    const refuse = (error: GatewayError): void => {
      stop();
      request.pause();
      reject(error);
    };
    const onData = (piece: Buffer): void => {
      size += piece.length;
      pieces.push(piece);
      if (size > bodyBytesMax) return refuse(bodyTooLarge());
      // Most bodies are complete with their first piece, and never count.
      if (size === announced) return undefined;
      try {
        return body.keep(piece.length);
      } catch (error) {
        return refuse(error as GatewayError);
      }
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
    const body = bodies.open({ caller, onSlow: refuse });
    request.on("data", onData);
    request.on("end", onEnd);
    request.on("error", onCut);
    request.on("close", onCut);
  });
}

/** A form that is read while it arrives. */
export interface ArrivingForm {
  /** With its boundary. */
  readonly contentType: string;
  /** @throws GatewayError INVALID_REQUEST where it is cut off or too slow; RATE_LIMIT_EXCEEDED or SERVICE_UNAVAILABLE over
   * a budget */
  readonly pieces: AsyncIterable<Uint8Array>;
}

/**
 * Opens a form. Its reader may stop early: the connection stays open for the reply.
 *
 * @throws GatewayError REQUEST_TOO_LARGE where the length is known
 */
export function openForm(
  request: IncomingMessage,
  response: ServerResponse,
  options: ReadBodyOptions,
): ArrivingForm {
  const { "content-length": length = "0", "content-type": contentType = "" } = request.headers;
  if (Number(length) > uploadMax.bytes) throw formTooLarge();
  if (isWaiting(request)) {
    response.writeContinue();
    delete request.headers.expect;
  }
  return { contentType, pieces: piecesOf(request, options) };
}

async function* piecesOf(
  request: IncomingMessage,
  { bodies, caller }: ReadBodyOptions,
): AsyncIterable<Uint8Array> {
  const form = bodies.open({ caller, onSlow: (error) => request.destroy(error) });
  try {
    form.keep(uploadMax.memoryBytes);
    const pieces = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
    for await (const piece of pieces) {
      form.drop(piece.length);
      yield piece;
    }
  } finally {
    form.close();
  }
}

/** A reply whose head, with its length, and body are known. */
interface KnownReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Sends a reply while the request's body still arrives, then reads the rest and drops it. Clients that read while they send
 * stop; the many that read no reply before they have sent everything get it, too. A connection that was closed under
 * them would be a broken pipe to them, and their SDKs would send the whole request again. Never rejects.
 */
export async function replyBeforeBodyEnds(
  request: IncomingMessage,
  response: ServerResponse,
  { reply, bodies }: { readonly reply: KnownReply; readonly bodies: UnfinishedBodies },
): Promise<void> {
  const { status, headers, body } = reply;
  const length = { "content-length": String(body.length) };
  if (isWaiting(request)) {
    // Whether its client still sends the body, nobody can tell, nor what comes next on the connection.
    response.writeHead(status, { ...headers, ...length, connection: "close" });
    response.end(body);
    return;
  }
  response.writeHead(status, { ...headers, ...length });
  // The client has all of it by its length. The end follows later, for it may close the connection.
  response.write(body);
  if (await discardBody(request, bodies)) response.end();
  else response.destroy();
}

/** Whether the client waits for `100 Continue` before it sends the body. */
function isWaiting({ headers }: IncomingMessage): boolean {
  return headers.expect !== undefined;
}

/** Drops the rest of a body. Resolves to whether it ended, and was neither too long nor too slow. */
function discardBody(request: IncomingMessage, bodies: UnfinishedBodies): Promise<boolean> {
  if (request.complete) return Promise.resolve(true);
  if (request.destroyed) return Promise.resolve(false);
  return new Promise((resolve) => {
    let size = 0;
    const stop = (): void => {
      rest.close();
      request.off("data", onData);
      request.off("close", stop);
      resolve(request.complete);
    };
    const onData = (piece: Buffer): void => {
      size += piece.length;
      rest.drop(piece.length);
      if (size > discardedBodyBytesMax) stop();
    };
    const rest = bodies.open({ onSlow: stop });
    request.on("data", onData);
    request.once("close", stop);
    request.resume();
  });
}
