import type { ServerResponse } from "node:http";
import { halfClosed } from "./http-server.ts";

/**
 * Interval of the silence check in milliseconds, and the number of silent intervals after which filler is sent: 15
 * to 20 s (R-TXT-8). Counting intervals costs writes nothing; restarting a timer at each write did.
 */
const lookMs = 5_000;
const silentLooks = 4;

/**
 * How long a client may take no data before it is disconnected, in milliseconds. Until then it holds memory, and a
 * stream also a balance hold and a vendor connection.
 */
export const stallMs = 120_000;

/**
 * Pieces up to this size, in bytes, are copied behind their head or into their HTTP chunk. Node.js passes a head
 * and its body to the system as two pieces in a `writev`, a chunk as three, which costs 3 µs more than one; from
 * this size on, copying costs as much.
 */
const copiedBytesMax = 16 * 1024;

/** Writes a reply at the pace of its client: one write per piece, never more than one ahead. */
export class StreamWriter {
  readonly #response: ServerResponse;
  /** Whether this class writes HTTP chunks. HTTP/1.0 clients get none. */
  readonly #isChunked: boolean;
  readonly #filler: Buffer | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Intervals since the last write. */
  #looks = 0;

  /**
   * @param response its head has been sent
   * @param filler bytes to send after silence; `undefined` for none
   */
  constructor(response: ServerResponse, filler: Buffer | undefined) {
    this.#response = response;
    this.#filler = filler;
    this.#isChunked = response.chunkedEncoding;
    response.chunkedEncoding = false;
    if (filler === undefined) return;
    this.#timer = setInterval(this.#look, lookMs).unref();
    response.on(halfClosed, this.#fill);
  }

  /**
   * Writes a piece. Waits while earlier data is unread. Resolves at once after a disconnect; the signal notifies
   * the producer.
   */
  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#looks = 0;
    const response = this.#response;
    if (response.destroyed || this.#send(bytes)) return undefined;
    return new Promise((resolve) => {
      const stalled = setTimeout(() => response.destroy(), stallMs);
      const onReady = (): void => {
        clearTimeout(stalled);
        response.off("drain", onReady);
        response.off("close", onReady);
        resolve();
      };
      response.on("drain", onReady);
      response.on("close", onReady);
    });
  }

  /** Ends the reply regularly. */
  end(): void {
    if (this.#response.destroyed) return;
    if (this.#isChunked) this.#response.end(lastChunk);
    else this.#response.end();
  }

  /** Stops the timer. */
  close(): void {
    clearInterval(this.#timer);
  }

  /** Returns whether more can be written at once. */
  #send(bytes: Uint8Array): boolean {
    const response = this.#response;
    if (!this.#isChunked) {
      // Text is appended to a head that was not sent yet, so that both leave as one piece.
      if (bytes.length > copiedBytesMax) return response.write(bytes);
      return response.write(
        Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1"),
        "latin1",
      );
    }
    const size = `${bytes.length.toString(16)}\r\n`;
    if (bytes.length > copiedBytesMax) {
      response.write(size, "latin1");
      response.write(bytes);
      return response.write("\r\n", "latin1");
    }
    const chunk = Buffer.allocUnsafe(size.length + bytes.length + 2);
    chunk.write(size, 0, "latin1");
    chunk.set(bytes, size.length);
    chunk[chunk.length - 2] = 0x0d;
    chunk[chunk.length - 1] = 0x0a;
    return response.write(chunk);
  }

  readonly #look = (): void => {
    this.#looks++;
    if (this.#looks < silentLooks) return;
    this.#looks = 0;
    this.#fill();
  };

  readonly #fill = (): void => {
    const response = this.#response;
    if (this.#filler && !response.destroyed && !response.writableNeedDrain) {
      this.#send(this.#filler);
    }
  };
}

const lastChunk = "0\r\n\r\n";

/**
 * Aborts a listener's running requests when the gateway stops. One listener serves all: adding and removing one per
 * request costs a microsecond.
 */
export function stopAll(stopping: AbortSignal): Set<AbortController> {
  const running = new Set<AbortController>();
  stopping.addEventListener("abort", () => {
    for (const abort of running) abort.abort(stopping.reason);
  });
  return running;
}

/** A controller that is aborted when the client disconnects early. */
export function abortWith(
  response: ServerResponse,
  running: Set<AbortController>,
): AbortController {
  const abort = new AbortController();
  running.add(abort);
  response.on("close", () => {
    running.delete(abort);
    if (!response.writableFinished) abort.abort();
  });
  return abort;
}
