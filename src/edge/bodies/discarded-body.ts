/** Closes connections whose client keeps sending a body that is not read. */
import type { IncomingMessage } from "node:http";
import { discardedBodyBytesMax, discardedBodyLingerMs } from "../../core/limits.ts";

/**
 * Watches the rest of a request over HTTP/1.1 that was answered before its body ended. Node.js
 * reads all of it; this ends the connection if the rest is longer than {@link
 * discardedBodyBytesMax}. A slow rest ends with `requestTimeout`.
 */
export function limitRest(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  let bytes = 0;
  const onData = (piece: Buffer): void => {
    bytes += piece.length;
    if (bytes <= discardedBodyBytesMax) return;
    request.off("data", onData);
    request.pause();
    setTimeout(() => request.socket.destroy(), discardedBodyLingerMs).unref();
  };
  request.on("data", onData);
}

/** Drops the rest of a body. Resolves to whether it ended, and was short enough. */
export function discardBody(request: IncomingMessage): Promise<boolean> {
  if (request.complete) return Promise.resolve(true);
  if (request.destroyed) return Promise.resolve(false);
  return new Promise((resolve) => {
    let bytes = 0;
    const stop = (): void => {
      request.off("data", onData);
      request.off("close", stop);
      resolve(request.complete);
    };
    const onData = (piece: Buffer): void => {
      bytes += piece.length;
      if (bytes <= discardedBodyBytesMax) return;
      request.off("data", onData);
      request.pause();
      setTimeout(stop, discardedBodyLingerMs).unref();
    };
    request.on("data", onData);
    request.once("close", stop);
    request.resume();
  });
}
