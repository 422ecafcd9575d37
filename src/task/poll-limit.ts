/**
 * How often an account may ask how its tasks stand: a bucket of tokens for each, in this process. A client that polls
 * in a tight loop takes a database's time from those that do not, and learns nothing sooner than by `?wait=`.
 *
 * Not the limits of one-time codes: those are rows, exact over all processes and for days; here a poll must not cost
 * more than what it is kept from.
 */
import type { PollLimits } from "../config/config.ts";
import { pollBurstDefault, pollsPerSecondDefault } from "../config/task-limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";

/** What a poll takes of a bucket: one, however long it waits. */
const pollTokens = 1;

/** What is given back of that where the client knew the answer by its `etag`: it took a look, and no body. */
const knownTokens = 0.75;

/** What {@link PollLimit} needs beside the limits. */
export interface PollLimitOptions extends Partial<PollLimits> {
  /** Told of each poll that is refused. Default: nobody. */
  readonly onRefused?: (() => void) | undefined;
  /** Milliseconds of a clock that never goes back. Default `performance.now`. */
  readonly now?: () => number;
}

interface Bucket {
  tokens: number;
  /** When it had so many. */
  atMs: number;
}

/** Counts polls. */
export class PollLimit {
  readonly #buckets = new Map<string, Bucket>();
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #onRefused: (() => void) | undefined;
  readonly #now: () => number;
  #tidiedMs: number;

  constructor(options: PollLimitOptions = {}) {
    const { perSecond = pollsPerSecondDefault, burst = pollBurstDefault } = options;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#onRefused = options.onRefused;
    this.#now = options.now ?? (() => performance.now());
    this.#tidiedMs = this.#now();
  }

  /** How many are remembered: those that polled a short while ago. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Counts a poll. @param poller whose polls count together @throws GatewayError RATE_LIMIT_EXCEEDED */
  take(poller: string): void {
    const bucket = this.#filled(poller);
    if (bucket.tokens >= pollTokens) {
      bucket.tokens -= pollTokens;
      return;
    }
    this.#onRefused?.();
    throw this.#tooMany((pollTokens - bucket.tokens) / this.#perSecond);
  }

  /** The poll that was counted last told its client nothing that it did not know. */
  giveBack(poller: string): void {
    const bucket = this.#filled(poller);
    bucket.tokens = Math.min(this.#burst, bucket.tokens + knownTokens);
  }

  /** The bucket with what came into it since. */
  #filled(poller: string): Bucket {
    const nowMs = this.#now();
    this.#tidy(nowMs);
    let bucket = this.#buckets.get(poller);
    if (bucket === undefined) {
      bucket = { tokens: this.#burst, atMs: nowMs };
      this.#buckets.set(poller, bucket);
    }
    const came = ((nowMs - bucket.atMs) / 1_000) * this.#perSecond;
    bucket.tokens = Math.min(this.#burst, bucket.tokens + came);
    bucket.atMs = nowMs;
    return bucket;
  }

  /** Forgets those that are full by now: a new one would be, too. */
  #tidy(nowMs: number): void {
    const fullMs = (this.#burst / this.#perSecond) * 1_000;
    if (nowMs - this.#tidiedMs < fullMs) return;
    this.#tidiedMs = nowMs;
    for (const [poller, { atMs }] of this.#buckets) {
      if (nowMs - atMs >= fullMs) this.#buckets.delete(poller);
    }
  }

  #tooMany(seconds: number): GatewayError {
    const retryAfterSeconds = Math.max(1, Math.ceil(seconds));
    return new GatewayError(
      ErrorCode.RATE_LIMIT_EXCEEDED,
      `Too many polls: an account may ask ${this.#perSecond} times a second how its tasks stand. Wait as long as retry-after says, and then poll with ?wait=30 or let a webhook tell; the tasks go on meanwhile`,
      { retryAfterSeconds },
    );
  }
}
