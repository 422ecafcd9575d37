/** When requests of an open loop are due, and which connection sends them. */

/** A connection without a request under way. */
export interface Asking {
  /** Sends a request. @param dueMs when it was due, by `performance.now()` */
  ask(dueMs: number): void;
}

/**
 * Requests of an open loop: the n-th is due n/rate seconds after the start, rounded up to a whole
 * millisecond, which is the grain of Node's timers. It goes to the connection that has been free
 * for longest, and waits where none is.
 */
export class Arrivals<Free extends Asking> {
  readonly #gapMs: number;
  readonly #free: Free[] = [];
  readonly #queued: number[] = [];
  #startMs = 0;
  #next = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param rate requests per second */
  constructor(rate: number) {
    this.#gapMs = 1_000 / rate;
  }

  /** The first request is due now. */
  start(): void {
    this.#startMs = Math.ceil(performance.now());
    this.#timer = setInterval(() => this.#run(), 1);
  }

  /** A connection can send: what has waited for longest, else what is due next. */
  onFree(connection: Free): void {
    const dueMs = this.#queued.shift();
    if (dueMs === undefined) this.#free.push(connection);
    else connection.ask(dueMs);
  }

  /** Returns when the requests were due that no connection has sent yet. */
  stop(): readonly number[] {
    clearInterval(this.#timer);
    return this.#queued;
  }

  #run(): void {
    const nowMs = performance.now();
    for (;;) {
      const dueMs = this.#startMs + Math.ceil(this.#next * this.#gapMs);
      if (dueMs > nowMs) return;
      this.#next++;
      const connection = this.#free.shift();
      if (connection === undefined) this.#queued.push(dueMs);
      else connection.ask(dueMs);
    }
  }
}
