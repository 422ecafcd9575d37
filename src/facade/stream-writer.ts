import type { ServerResponse } from "node:http";

/** How often is looked for silence, in milliseconds, and how many silent looks in a row are filled: 15 to 20 s
 * (R-TXT-8). Counting looks costs a write nothing; setting a timer anew for each write did. */
const lookMs = 5_000;
const silentLooks = 4;

/** How long a client may take nothing before it is given up, in milliseconds: it holds money and a
 * place at the vendor meanwhile. */
const stallMs = 120_000;

/** Writes a reply at the pace of its client. One write for each piece; never more than one ahead. */
export class StreamWriter {
  readonly #response: ServerResponse;
  readonly #filler: Buffer | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  /** Looks since the last write. */
  #looks = 0;

  /** @param filler what to send into silence; `undefined`: nothing. */
  constructor(response: ServerResponse, filler: Buffer | undefined) {
    this.#response = response;
    this.#filler = filler;
    if (filler !== undefined) this.#timer = setInterval(this.#look, lookMs).unref();
  }

  /** Writes a piece; waits while the client has not taken what was written before. Resolves at once
   * where the client has left: the signal tells the producer. */
  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#looks = 0;
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

  readonly #look = (): void => {
    this.#looks++;
    if (this.#looks < silentLooks) return;
    this.#looks = 0;
    const response = this.#response;
    if (this.#filler && !response.destroyed && !response.writableNeedDrain) {
      response.write(this.#filler);
    }
  };
}
