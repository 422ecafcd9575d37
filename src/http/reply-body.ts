import type { Dispatcher } from "undici";
import { streamBufferBytesMax } from "../config/limits.ts";
import { HttpFailure } from "./failure.ts";

type Result = IteratorResult<Buffer, undefined>;

interface Waiter {
  readonly resolve: (result: Result) => void;
  readonly reject: (failure: HttpFailure) => void;
}

const done: Result = { done: true, value: undefined };

/**
 * The body of a reply. What arrived in one read of the socket is one piece: a vendor's events come as
 * many small HTTP chunks, and a piece for each would cost five times the CPU of all else together.
 * Takes at most {@link streamBufferBytesMax} ahead of its reader, then pauses the connection.
 */
export class ReplyBody implements AsyncIterableIterator<Buffer, undefined> {
  readonly #controller: Dispatcher.DispatchController;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #waiter: Waiter | undefined;
  #isWoken = false;
  #ended = false;
  #failure: HttpFailure | undefined;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next piece. Rejects with {@link HttpFailure} where the reply broke. One reader at a time. */
  next(): Promise<Result> {
    if (this.#waiting.length > 0) return Promise.resolve(this.#take());
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#ended) return Promise.resolve(done);
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  /** Stops reading: closes the connection where the reply has not ended. */
  return(): Promise<Result> {
    this.cancel();
    return Promise.resolve(done);
  }

  /** The same, at once. */
  cancel(): void {
    if (this.#ended || this.#failure !== undefined) return;
    this.#controller.abort(new HttpFailure("aborted", "no longer wanted"));
  }

  /** The whole body. Rejects where it is longer than `bytesMax`. */
  async whole(bytesMax: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    let size = 0;
    for (;;) {
      const { done: isDone, value } = await this.next();
      if (isDone) return joined(pieces);
      size += value.length;
      if (size > bytesMax) {
        this.cancel();
        throw new HttpFailure("reset", `the reply is longer than ${bytesMax} bytes`);
      }
      pieces.push(value);
    }
  }

  /** Takes bytes from the connection. */
  push(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes >= streamBufferBytesMax) this.#controller.pause();
    if (this.#waiter !== undefined && !this.#isWoken) {
      this.#isWoken = true;
      // Runs when the parser has gone through all that one read brought.
      queueMicrotask(this.#wake);
    }
  }

  /** The connection has delivered all. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** The connection broke. What arrived before is still read. */
  fail(failure: HttpFailure): void {
    this.#failure = failure;
    this.#wake();
  }

  readonly #wake = (): void => {
    this.#isWoken = false;
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    this.#waiter = undefined;
    if (this.#waiting.length > 0) waiter.resolve(this.#take());
    else if (this.#failure !== undefined) waiter.reject(this.#failure);
    else if (this.#ended) waiter.resolve(done);
    else this.#waiter = waiter;
  };

  #take(): Result {
    const pieces = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (this.#controller.paused) this.#controller.resume();
    return { done: false, value: joined(pieces) };
  }
}

/** The pieces as one. Buffer.concat checks each of them anew and takes four times as long. */
function joined(pieces: readonly Buffer[]): Buffer {
  if (pieces.length === 1 && pieces[0]) return pieces[0];
  const whole = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
