/** Reads and discards request bodies. */
import type { IncomingMessage } from "node:http";
import { bodyBytesMax, discardedBodyBytesMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { bodyTooLarge, wrongLength } from "./errors.ts";

/**
 * Reads a whole body; empty where there is none. The bytes are copied, since the pieces are the socket's own
 * memory.
 *
 * @throws GatewayError REQUEST_TOO_LARGE, before reading where the length is known; INVALID_REQUEST where the body
 * is cut off
 */
export function readBody(request: IncomingMessage): Promise<Buffer> {
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

/** Whether the rest of a body is short enough to wait for. Its length must be known. */
export function isDiscardable({ headers }: IncomingMessage): boolean {
  return Number(headers["content-length"]) <= discardedBodyBytesMax;
}

/**
 * Reads the rest of a body and drops it; resolves at its end, or when the client disconnects. Many clients read no reply
 * before they have sent everything: answered early and disconnected, they would report a broken pipe instead of the 413,
 * and their SDKs would send the whole request again.
 */
export async function discardBody(request: IncomingMessage): Promise<void> {
  if (request.readableEnded || request.destroyed) return;
  await new Promise<void>((resolve) => {
    request.once("close", () => resolve());
    request.resume();
  });
}
