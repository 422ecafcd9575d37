/**
 * Counts tokens exactly, in a worker thread: only if the count decides something, never for each
 * call.
 */
import { createHash } from "node:crypto";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import {
  countAccountMax,
  countBytesMax,
  countCacheMax,
  countIdleMs,
  countQueueMax,
  countRestMs,
  countTimeoutMs,
} from "../core/limits.ts";
import { currentAccountContext, sharedContext } from "../core/current-account.ts";
import type { Encoding } from "./family.ts";

/** A text to count. */
export interface CountQuestion {
  readonly encoding: Encoding;
  readonly kind: "request" | "reply";
  /** One JSON object in UTF-8, without its media. */
  readonly body: Uint8Array;
}

/** The answer of the counting thread. */
export type CountAnswer = { readonly tokens: number } | { readonly failure: string };

/** Counts the tokens of requests and replies. */
export interface TokenCounter {
  /**
   * Counts tokens. Undefined if the text is too long, the queue is full or has too many texts of
   * the account, or the count is late or failed. Then use an estimate.
   */
  count(question: CountQuestion): Promise<number | undefined>;
  /** Ends the thread. Pending counts resolve to `undefined`. */
  close(): Promise<void>;
}

export interface TokenCounterOptions {
  /** Called with the reason of a failed count. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** The timeout of one count, after which its thread ends. Default {@link countTimeoutMs}. */
  readonly timeoutMs?: number;
  /** Maximum wait of a caller, the queue included. Default {@link countTimeoutMs}. */
  readonly deadlineMs?: number;
  /** The script of the thread. Default: count-worker.ts; tests use one that fails. */
  readonly script?: URL;
}

interface PendingCount {
  readonly question: CountQuestion;
  /** The hash of the text, for the cache of its count. */
  readonly key: string;
  readonly accountId: string;
  readonly resolve: (tokens: number | undefined) => void;
}

/**
 * Creates a counter. Its thread starts with the first count and ends when idle, because it occupies
 * 80 MB.
 */
export function createTokenCounter(options: TokenCounterOptions): TokenCounter {
  return new ThreadCounter(options);
}

class ThreadCounter implements TokenCounter {
  readonly #options: TokenCounterOptions;
  /**
   * Waiting texts by account, in the order of their turns: the next text is the first text of the
   * first account.
   */
  readonly #pending = new Map<string, PendingCount[]>();
  #pendingCount = 0;
  /** The last time at which a text of an account took too long. */
  readonly #slowAt = new Map<string, number>();
  /** The latest counts. Agents count the same text repeatedly. */
  readonly #known = new Map<string, number>();
  #current: PendingCount | undefined;
  #worker: Worker | undefined;
  /** The timeout of the current count, or the idle timer. */
  #timer: NodeJS.Timeout | undefined;
  #failedAt = -Infinity;
  #isClosed = false;

  constructor(options: TokenCounterOptions) {
    this.#options = options;
  }

  count(question: CountQuestion): Promise<number | undefined> {
    if (this.#isClosed || question.body.length > countBytesMax) return Promise.resolve(undefined);
    const key = keyOf(question);
    const known = this.#known.get(key);
    if (known !== undefined) return Promise.resolve(known);
    const accountId = currentAccountContext();
    const own = this.#pending.get(accountId)?.length ?? 0;
    const isRefused =
      own >= countAccountMax || this.#pendingCount >= countQueueMax || this.#isResting(accountId);
    if (isRefused) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const late = (): void => {
        this.#remove(pending);
        resolve(undefined);
      };
      const timer = setTimeout(late, this.#options.deadlineMs ?? countTimeoutMs);
      const pending: PendingCount = {
        question,
        key,
        accountId,
        resolve(tokens) {
          clearTimeout(timer);
          resolve(tokens);
        },
      };
      this.#add(pending);
      if (this.#current === undefined) this.#next();
    });
  }

  /**
   * Whether counting is suspended for the account: after a failure of the thread, or of a text that
   * took too long.
   */
  #isResting(accountId: string): boolean {
    const failedAt = Math.max(this.#failedAt, this.#slowAt.get(accountId) ?? -Infinity);
    return performance.now() - failedAt < countRestMs;
  }

  #add(pending: PendingCount): void {
    const own = this.#pending.get(pending.accountId);
    if (own === undefined) this.#pending.set(pending.accountId, [pending]);
    else own.push(pending);
    this.#pendingCount++;
  }

  #remove(pending: PendingCount): void {
    const own = this.#pending.get(pending.accountId) ?? [];
    const at = own.indexOf(pending);
    if (at < 0) return;
    own.splice(at, 1);
    this.#pendingCount--;
    if (own.length === 0) this.#pending.delete(pending.accountId);
  }

  /**
   * Takes the next text. Its account then moves behind the others, so that each waits for one text
   * of every other.
   */
  #take(): PendingCount | undefined {
    const [first] = this.#pending;
    const [accountId, own = []] = first ?? [];
    const [next] = own;
    if (accountId === undefined || next === undefined) return undefined;
    this.#remove(next);
    if (this.#pending.delete(accountId)) this.#pending.set(accountId, own);
    return next;
  }

  /** Answers all texts that wait: of one account, or of all. */
  #drop(accountIds: Iterable<string>): void {
    for (const accountId of [...accountIds]) {
      const own = this.#pending.get(accountId) ?? [];
      this.#pending.delete(accountId);
      this.#pendingCount -= own.length;
      for (const { resolve } of own) resolve(undefined);
    }
  }

  #remember(key: string, tokens: number): void {
    this.#known.set(key, tokens);
    const [oldest] = this.#known.keys();
    if (this.#known.size > countCacheMax && oldest !== undefined) this.#known.delete(oldest);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#stop();
  }

  #next(): void {
    clearTimeout(this.#timer);
    this.#current = this.#take();
    if (this.#current === undefined) {
      this.#timer = setTimeout(() => void this.#stop(), countIdleMs);
      this.#timer.unref();
      return;
    }
    try {
      this.#worker ??= this.#start();
      const { timeoutMs = countTimeoutMs } = this.#options;
      this.#timer = setTimeout(() => this.#failSlow(`no count within ${timeoutMs} ms`), timeoutMs);
      this.#worker.postMessage(this.#current.question);
    } catch (error) {
      this.#fail(String(error));
    }
  }

  #start(): Worker {
    const script =
      this.#options.script ??
      new URL(`count-worker${extname(import.meta.filename)}`, import.meta.url);
    const worker = new Worker(script, {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    });
    // Counting must not keep a process alive: a stopping process settles without a count.
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
      if (current !== undefined) this.#remember(current.key, answer.tokens);
      current?.resolve(answer.tokens);
    } else {
      this.#warn(answer.failure);
      current?.resolve(undefined);
    }
    this.#next();
  }

  /** Ends a thread that died. A new one is started after `countRestMs`. */
  #fail(reason: string): void {
    this.#failedAt = performance.now();
    this.#warn(reason);
    void this.#stop();
  }

  /**
   * Ends a thread whose text takes too long. Its account gets no counts for `countRestMs`; others
   * get a new thread.
   */
  #failSlow(reason: string): void {
    const accountId = this.#current?.accountId ?? sharedContext;
    this.#slowAt.set(accountId, performance.now());
    for (const each of this.#slowAt.keys()) if (!this.#isResting(each)) this.#slowAt.delete(each);
    this.#warn(reason);
    this.#drop([accountId]);
    void this.#endThread();
    this.#next();
  }

  async #stop(): Promise<void> {
    this.#drop(this.#pending.keys());
    await this.#endThread();
  }

  /** Ends the thread, and with it the current count. */
  async #endThread(): Promise<void> {
    clearTimeout(this.#timer);
    const worker = this.#worker;
    this.#worker = undefined;
    this.#current?.resolve(undefined);
    this.#current = undefined;
    await worker?.terminate();
  }

  #warn(reason: string): void {
    this.#options.warn("tokens could not be counted: estimated instead", { reason });
  }
}

function keyOf({ encoding, kind, body }: CountQuestion): string {
  return `${encoding} ${kind} ${createHash("sha256").update(body).digest("base64")}`;
}
