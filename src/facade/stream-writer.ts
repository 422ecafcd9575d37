import type { ServerResponse } from "node:http";

/** How often is looked for silence, in milliseconds, and how many silent looks in a row are filled: 15 to 20 s
 * (R-TXT-8). Counting looks costs a write nothing; setting a timer anew for each write did. */
const lookMs = 5_000;
const silentLooks = 4;

/** How long a client may take nothing before it is given up, in milliseconds: it holds memory, and of a stream money and
 * a place at the vendor meanwhile. */
export const stallMs = 120_000;

/**
 * Up to which size a piece is copied behind its head, or into its HTTP chunk, in bytes. Node.js hands a head and
 * its body to the system as two pieces in a `writev`, a chunk as three, which costs 3 µs more than one; copying
 * as much costs the same from here on.
 */
const copiedBytesMax = 16 * 1024;

/** Writes a reply at the pace of its client. One write for each piece; never more than one ahead. */
export class StreamWriter {
  readonly #response: ServerResponse;
  /** Whether this class makes the HTTP chunks. An HTTP/1.0 client gets none. */
  readonly #isChunked: boolean;
  readonly #filler: Buffer | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Looks since the last write. */
  #looks = 0;

  /**
   * @param response whose head is out
   * @param filler what to send into silence; `undefined`: nothing.
   */
  constructor(response: ServerResponse, filler: Buffer | undefined) {
    this.#response = response;
    this.#filler = filler;
    this.#isChunked = response.chunkedEncoding;
    response.chunkedEncoding = false;
    if (filler !== undefined) this.#timer = setInterval(this.#look, lookMs).unref();
  }

  /** Writes a piece; waits while the client has not taken what was written before. Resolves at once
   * where the client has left: the signal tells the producer. */
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

  /** Ends the reply in good order. */
  end(): void {
    if (this.#response.destroyed) return;
    if (this.#isChunked) this.#response.end(lastChunk);
    else this.#response.end();
  }

  /** Stops the timer. */
  close(): void {
    clearInterval(this.#timer);
  }

  /** Returns whether more may be written at once. */
  #send(bytes: Uint8Array): boolean {
    const response = this.#response;
    if (!this.#isChunked) {
      // Text is put behind a head that has not left yet, and both leave as one piece.
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
    const response = this.#response;
    if (this.#filler && !response.destroyed && !response.writableNeedDrain) {
      this.#send(this.#filler);
    }
  };
}

const lastChunk = "0\r\n\r\n";

/* Ends RPCs whose callers have left, or which outlive the gateway. */

/** Aborts the running requests of a listener when the gateway must stop. One listener for all: adding
 * one to the signal for each request and taking it off again costs a microsecond. */
export function stopAll(stopping: AbortSignal): Set<AbortController> {
  const running = new Set<AbortController>();
  stopping.addEventListener("abort", () => {
    for (const abort of running) abort.abort(stopping.reason);
  });
  return running;
}

/** Aborted when the client leaves before the end. */
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
