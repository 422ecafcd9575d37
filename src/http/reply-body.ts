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
 * The body of a reply: pieces in the sizes they arrived in. Takes at most
 * {@link streamBufferBytesMax} ahead of its reader, then pauses the connection.
 */
export class ReplyBody implements AsyncIterableIterator<Buffer, undefined> {
  readonly #controller: Dispatcher.DispatchController;
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #waiter: Waiter | undefined;
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
    const value = this.#waiting.shift();
    if (value !== undefined) {
      this.#waitingBytes -= value.length;
      if (this.#controller.paused && this.#waitingBytes === 0) this.#controller.resume();
      return Promise.resolve({ done: false, value });
    }
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
      if (isDone) return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
      size += value.length;
      if (size > bytesMax) {
        this.cancel();
        throw new HttpFailure("reset", `the reply is longer than ${bytesMax} bytes`);
      }
      pieces.push(value);
    }
  }

  /** Takes a piece from the connection. */
  push(bytes: Buffer): void {
    const waiter = this.#waiter;
    if (waiter !== undefined) {
      this.#waiter = undefined;
      waiter.resolve({ done: false, value: bytes });
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes >= streamBufferBytesMax) this.#controller.pause();
  }

  /** The connection has delivered all. */
  end(): void {
    this.#ended = true;
    this.#waiter?.resolve(done);
    this.#waiter = undefined;
  }

  /** The connection broke. What arrived before is still read. */
  fail(failure: HttpFailure): void {
    this.#failure = failure;
    this.#waiter?.reject(failure);
    this.#waiter = undefined;
  }
}
