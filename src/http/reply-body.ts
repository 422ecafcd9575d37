import type { Dispatcher } from "undici";
import { join } from "../bytes.ts";
import { streamBufferBytesMax } from "../config/limits.ts";
import { HttpFailure } from "./failure.ts";

interface Waiter {
  readonly resolve: (isThere: boolean) => void;
  readonly reject: (failure: HttpFailure) => void;
}

/**
 * The body of a reply, read as `while (await body.ready()) use(body.take())`. What has arrived by the
 * time it is taken is one piece: a vendor's events come as many small HTTP chunks in one read of the
 * socket, and a piece for each would cost five times the CPU of all else together. Takes at most
 * {@link streamBufferBytesMax} ahead of its reader, then pauses the connection.
 */
export class ReplyBody {
  readonly #controller: Dispatcher.DispatchController;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #waiter: Waiter | undefined;
  #ended = false;
  #failure: HttpFailure | undefined;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  /** Resolves to whether there is something to take; false at the end. Rejects with {@link HttpFailure}
   * where the reply broke, once what came before is taken. One reader at a time. */
  ready(): Promise<boolean> {
    if (this.#waiting.length > 0) return Promise.resolve(true);
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#ended) return Promise.resolve(false);
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  /** What has arrived, in pieces; empty where nothing has. */
  take(): Buffer[] {
    const pieces = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (this.#controller.paused) this.#controller.resume();
    return pieces;
  }

  /** Stops reading: closes the connection where the reply has not ended. */
  cancel(): void {
    if (this.#ended || this.#failure !== undefined) return;
    this.#controller.abort(new HttpFailure("aborted", "no longer wanted"));
  }

  /** The whole body. Rejects where it is longer than `bytesMax`. */
  async whole(bytesMax: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    let size = 0;
    while (await this.ready()) {
      for (const piece of this.take()) {
        size += piece.length;
        pieces.push(piece);
      }
      if (size > bytesMax) {
        this.cancel();
        throw new HttpFailure("reset", `the reply is longer than ${bytesMax} bytes`);
      }
    }
    return join(pieces);
  }

  /** Takes bytes from the connection. */
  push(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes >= streamBufferBytesMax) this.#controller.pause();
    // The reader goes on when the parser has gone through all that this read of the socket brought.
    this.#wake(true);
  }

  /** The connection has delivered all. */
  end(): void {
    this.#ended = true;
    this.#wake(false);
  }

  /** The connection broke. What arrived before is still read. */
  fail(failure: HttpFailure): void {
    this.#failure = failure;
    const waiter = this.#waiter;
    this.#waiter = undefined;
    waiter?.reject(failure);
  }

  #wake(isThere: boolean): void {
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    this.#waiter = undefined;
    waiter.resolve(isThere);
  }
}
