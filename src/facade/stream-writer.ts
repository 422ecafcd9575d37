import type { ServerResponse } from "node:http";

/** How long a stream may be silent before it is filled, in milliseconds (R-TXT-8). */
const silenceMs = 15_000;

/** How long a client may take nothing before it is given up, in milliseconds: it holds money and a
 * place at the vendor meanwhile. */
const stallMs = 120_000;

/** Writes a reply at the pace of its client. One write for each piece; never more than one ahead. */
export class StreamWriter {
  readonly #response: ServerResponse;
  readonly #filler: Buffer | undefined;
  readonly #timer: NodeJS.Timeout | undefined;

  /** @param filler what to send into silence; `undefined`: nothing. */
  constructor(response: ServerResponse, filler: Buffer | undefined) {
    this.#response = response;
    this.#filler = filler;
    if (filler !== undefined) this.#timer = setInterval(this.#fill, silenceMs).unref();
  }

  /** Writes a piece; waits while the client has not taken what was written before. Resolves at once
   * where the client has left: the signal tells the producer. */
  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#timer?.refresh();
    const response = this.#response;
    if (response.destroyed || response.write(bytes)) return undefined;
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
    if (!this.#response.destroyed) this.#response.end();
  }

  /** Stops the timer. */
  close(): void {
    clearInterval(this.#timer);
  }

  readonly #fill = (): void => {
    const response = this.#response;
    if (this.#filler && !response.destroyed && !response.writableNeedDrain) {
      response.write(this.#filler);
    }
  };
}
