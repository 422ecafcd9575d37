/**
 * Sends a request over HTTP/2: gRPC and Connect as their clients do, with bodies that no client
 * would send.
 */
import { type ClientHttp2Session, connect, constants } from "node:http2";
import type { Outcome } from "./send-http1.ts";
import type { Shot } from "./shot.ts";

/** Headers that HTTP/2 forbids: Node's client throws on them. */
const forbidden =
  /^(?:connection|upgrade|transfer-encoding|keep-alive|proxy-connection|http2-settings|content-length|te)$/;

/** A client that keeps one session. */
export class Http2Client {
  #session: ClientHttp2Session | undefined;

  /** Never rejects. @param deadlineMs how long everything may take */
  send(address: string, shot: Shot, deadlineMs: number): Promise<Outcome> {
    const startMs = performance.now();
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const headers: Record<string, string> = {};
    const pieces: Buffer[] = [];
    let length = 0;
    const finish = (end: Outcome["end"]): void => {
      clearTimeout(timer);
      clearTimeout(leaving);
      const status = Number(headers[":status"] ?? 0);
      const body = Buffer.concat(pieces);
      resolve({ status, headers, body, end, extra: 0, ms: performance.now() - startMs });
    };
    const timer = setTimeout(() => finish("hang"), deadlineMs);
    const stream = this.#request(address, shot);
    const leave = (): void => {
      stream?.close(constants.NGHTTP2_CANCEL);
      finish("left");
    };
    const leaving = shot.readMs < deadlineMs ? setTimeout(leave, shot.readMs) : undefined;
    if (stream === undefined) {
      finish("left");
      return promise;
    }
    const keep = (more: Readonly<Record<string, unknown>>): void => {
      for (const [name, value] of Object.entries(more)) headers[name] = String(value);
    };
    stream.on("response", keep).on("trailers", keep);
    stream.on("error", () => {});
    stream.on("data", (piece: Buffer) => {
      pieces.push(piece);
      length += piece.length;
      if (length > shot.readMax) leave();
    });
    stream.on("end", () => finish("complete"));
    stream.on("close", () => finish(stream.rstCode === 0 ? "complete" : "closed"));
    const { body, cutAt = 1 } = shot;
    if (body.length > 0) stream.write(body.subarray(0, body.length * cutAt));
    if (shot.then === "reset") leave();
    else stream.end();
    return promise;
  }

  close(): void {
    this.#session?.destroy();
  }

  #request(address: string, shot: Shot) {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      this.#session = connect(address);
      this.#session.on("error", () => {});
    }
    const headers: Record<string, string> = { te: "trailers" };
    for (const [name, value] of shot.headers) {
      const lower = name.toLowerCase();
      if (!forbidden.test(lower)) headers[lower === "host" ? ":authority" : lower] = value;
    }
    try {
      return this.#session.request({ ...headers, ":method": shot.method, ":path": shot.target });
    } catch {
      // The client itself refuses to send this.
      return undefined;
    }
  }
}
