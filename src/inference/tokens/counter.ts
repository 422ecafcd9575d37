/** Counts tokens exactly, in a thread of its own: only where it decides something, never for each call. */
import { Worker } from "node:worker_threads";
import {
  countBytesMax,
  countIdleMs,
  countQueueMax,
  countRestMs,
  countTimeoutMs,
} from "../../config/limits.ts";
import type { Encoding } from "./family.ts";

/** What the thread is asked. */
export interface CountQuestion {
  readonly encoding: Encoding;
  readonly kind: "request" | "reply";
  /** One JSON object in UTF-8, its pictures left out. */
  readonly body: Uint8Array;
}

/** What it answers. */
export type CountAnswer = { readonly tokens: number } | { readonly failure: string };

/** Counts. */
export interface TokenCounter {
  /** The tokens; `undefined`: too long, too much to do, or it failed. Then the estimate must do. */
  count(question: CountQuestion): Promise<number | undefined>;
  /** Ends the thread; what is asked is answered with `undefined`. */
  close(): Promise<void>;
}

export interface TokenCounterOptions {
  /** Told why a count failed. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** How long one count may take, in milliseconds. Default {@link countTimeoutMs}. */
  readonly timeoutMs?: number;
  /** The script of the thread. Default: count-worker.ts; tests take one that fails. */
  readonly script?: URL;
}

interface PendingCount {
  readonly question: CountQuestion;
  readonly resolve: (tokens: number | undefined) => void;
}

/** Makes one. Its thread starts with the first count and ends when there is nothing to do for a while: it
 * keeps 80 MB. */
export function createTokenCounter(options: TokenCounterOptions): TokenCounter {
  return new ThreadCounter(options);
}

class ThreadCounter implements TokenCounter {
  readonly #options: TokenCounterOptions;
  readonly #pending: PendingCount[] = [];
  #current: PendingCount | undefined;
  #worker: Worker | undefined;
  /** Of the count under way, or of the rest after the last one. */
  #timer: NodeJS.Timeout | undefined;
  #failedAt = -Infinity;
  #isClosed = false;

  constructor(options: TokenCounterOptions) {
    this.#options = options;
  }

  count(question: CountQuestion): Promise<number | undefined> {
    const isRefused =
      this.#isClosed ||
      question.body.length > countBytesMax ||
      this.#pending.length >= countQueueMax ||
      performance.now() - this.#failedAt < countRestMs;
    if (isRefused) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#pending.push({ question, resolve });
      if (this.#current === undefined) this.#next();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#stop();
  }

  #next(): void {
    clearTimeout(this.#timer);
    this.#current = this.#pending.shift();
    if (this.#current === undefined) {
      this.#timer = setTimeout(() => void this.#stop(), countIdleMs);
      this.#timer.unref();
      return;
    }
    try {
      this.#worker ??= this.#start();
      const { timeoutMs = countTimeoutMs } = this.#options;
      this.#timer = setTimeout(() => this.#fail(`no count within ${timeoutMs} ms`), timeoutMs);
      this.#worker.postMessage(this.#current.question);
    } catch (error) {
      this.#fail(String(error));
    }
  }

  #start(): Worker {
    const script = this.#options.script ?? new URL("count-worker.ts", import.meta.url);
    const worker = new Worker(script, {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    });
    // Counting must not keep a process alive; what waits for a count is settled without one.
    worker.unref();
    worker.on("message", (answer: CountAnswer) => {
      if (this.#worker === worker) this.#answered(answer);
    });
    worker.on("error", (error) => this.#worker === worker && this.#fail(String(error)));
    worker.on(
      "exit",
      (code) => this.#worker === worker && this.#fail(`its thread ended (${code})`),
    );
    return worker;
  }

  #answered(answer: CountAnswer): void {
    const current = this.#current;
    if ("tokens" in answer) {
      current?.resolve(answer.tokens);
    } else {
      this.#warn(answer.failure);
      current?.resolve(undefined);
    }
    this.#next();
  }

  /** Nobody waits for a thread that is stuck or gone; a new one is tried after a rest. */
  #fail(reason: string): void {
    this.#failedAt = performance.now();
    this.#warn(reason);
    void this.#stop();
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#timer);
    const worker = this.#worker;
    this.#worker = undefined;
    this.#current?.resolve(undefined);
    this.#current = undefined;
    for (const { resolve } of this.#pending.splice(0)) resolve(undefined);
    await worker?.terminate();
  }

  #warn(reason: string): void {
    this.#options.warn("tokens could not be counted: estimated instead", { reason });
  }
}
