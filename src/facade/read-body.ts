/** Reads the body of a request as bytes. */
import type { IncomingMessage } from "node:http";
import { bodyBytesMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { bodyTooLarge, wrongLength } from "./errors.ts";

/**
 * The body; empty where there is none. What it is read from is the socket's memory: it is copied.
 *
 * @throws GatewayError REQUEST_TOO_LARGE, before it is read where its length is known; INVALID_REQUEST where it was cut
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
