/** The circuit breaker of one route or one credential: when calls stop going there, and when one may probe it. Pure. */
import type { BreakerConfig } from "../config/config.ts";

/**
 * What went wrong in an attempt, for routing:
 *
 * - `connect`: no connection, so nothing was sent.
 * - `server`: 408, 5xx, a broken or unreadable reply.
 * - `silence`: no content in time.
 * - `credential`: the credential or its account's money was refused.
 * - `model`: the vendor does not have the route's model.
 * - `rate_limit`: 429.
 * - `overloaded`: the limit of calls in flight of this gateway; the vendor was not asked.
 * - `limited`: the limits of the credential in this gateway; the vendor was not asked.
 * - `context`: the request is too long for the route.
 * - `unfit`: only other routes can serve the request; the vendor was not asked.
 */
export type AttemptFailure =
  | "connect"
  | "server"
  | "silence"
  | "credential"
  | "model"
  | "rate_limit"
  | "overloaded"
  | "limited"
  | "context"
  | "unfit";

/** Failures in a row that open a breaker, where fewer than the configured number do. */
const silencesMax = 3;

/** The longest cooldown, in multiples of the configured one: with the default of 10 s and its jitter, a vendor that has
 * recovered is used again within half a minute, also where calls are rare. Four times the cooldown took up to 48 s. */
export const cooldownGrowthMax = 2;

/** An open breaker, as all processes share it. Times in milliseconds of the process's own clock. */
export interface OpenState {
  readonly openedAtMs: number;
  /** When the next probe may begin. */
  readonly probeAtMs: number;
  readonly failure: AttemptFailure;
}

/** `half_open`: the cooldown is over, and one call may probe. */
export type BreakerState = "closed" | "open" | "half_open";

/** Counts failures in a row, and remembers whether it is open. */
export class Breaker {
  readonly #config: BreakerConfig;
  /** When recent failures in a row happened, each with its share of what opens the breaker. */
  #failures: { readonly atMs: number; readonly share: number }[] = [];
  #open: OpenState | undefined;

  constructor(config: BreakerConfig) {
    this.#config = config;
  }

  get config(): BreakerConfig {
    return this.#config;
  }

  /** `undefined`: it is closed. */
  get open(): OpenState | undefined {
    return this.#open;
  }

  /** Whether the last outcome was a failure. */
  get hasFailed(): boolean {
    return this.#failures.length > 0 || this.#open !== undefined;
  }

  state(nowMs: number): BreakerState {
    if (this.#open === undefined) return "closed";
    return nowMs < this.#open.probeAtMs ? "open" : "half_open";
  }

  /** Records a failure. Returns whether it opens the breaker. */
  failed(failure: AttemptFailure, nowMs: number): boolean {
    if (this.#open !== undefined) return false;
    const { failures, windowMs, cooldownMs } = this.#config;
    const recent = this.#failures.filter(({ atMs }) => atMs > nowMs - windowMs);
    recent.push({ atMs: nowMs, share: 1 / neededFor(failure, failures) });
    this.#failures = recent;
    // Thirds and fifths do not add up to exactly 1.
    if (recent.reduce((sum, { share }) => sum + share, 0) < 1 - 1e-9) return false;
    this.set({ openedAtMs: nowMs, probeAtMs: nowMs + cooldownMs, failure });
    return true;
  }

  /**
   * Records the success of an attempt that began at `startMs`. Returns whether it closes the breaker: one that began
   * before the breaker opened says nothing.
   */
  succeeded(startMs: number): boolean {
    if (this.#open === undefined) {
      if (this.#failures.length > 0) this.#failures = [];
      return false;
    }
    if (startMs < this.#open.openedAtMs) return false;
    this.set(undefined);
    return true;
  }

  /** Sets the state, as another process shared it. */
  set(open: OpenState | undefined): void {
    this.#open = open;
    this.#failures = [];
  }
}

/** How many of such failures in a row open a breaker. */
function neededFor(failure: AttemptFailure, failures: number): number {
  if (failure === "credential" || failure === "model") return 1;
  return failure === "silence" ? Math.min(silencesMax, failures) : failures;
}

// Counts attempts of a route or credential: outcomes, and times to the first content.

/** Upper bounds of the times to first content, in milliseconds: each 1.5 times the one before, from 10 ms to 20 min. */
const latencyBoundsMs: readonly number[] = Array.from({ length: 30 }, (_, index) =>
  Math.round(10 * 1.5 ** index),
);

/** The attempts in a span of time. */
export interface AttemptCounts {
  attempts: number;
  failures: number;
  /** Successes by {@link latencyBoundsMs}; one more for longer ones. */
  latencies: number[];
}

/** The last failure. */
interface LastFailure {
  /** By `performance.now()`. */
  readonly atMs: number;
  /** The label of metrics, or a text for operators, without any text of the vendor. */
  readonly what: string;
}

/** Counts of the current minute, and the last outcomes of this process. */
export class HealthCounts {
  lastFailure: LastFailure | undefined;
  /** `atMs`: by `performance.now()`. */
  lastSuccess: { readonly atMs: number; readonly durationMs: number } | undefined;
  /** Of the minute since the last {@link restart}. */
  counts = emptyCounts();

  answered(durationMs: number): void {
    const { counts } = this;
    counts.attempts++;
    const bucket = bucketOf(durationMs);
    counts.latencies[bucket] = (counts.latencies[bucket] ?? 0) + 1;
    this.lastSuccess = { atMs: performance.now(), durationMs };
  }

  failed(what: string): void {
    this.counts.attempts++;
    this.counts.failures++;
    this.lastFailure = { atMs: performance.now(), what };
  }

  /** Begins another minute. */
  restart(): void {
    if (this.counts.attempts > 0) this.counts = emptyCounts();
  }
}

export function emptyCounts(): AttemptCounts {
  return {
    attempts: 0,
    failures: 0,
    latencies: Array.from({ length: latencyBoundsMs.length + 1 }, () => 0),
  };
}

function bucketOf(durationMs: number): number {
  let index = 0;
  for (const bound of latencyBoundsMs) {
    if (durationMs <= bound) return index;
    index++;
  }
  return index;
}

/** A percentile of the times to first content in milliseconds, as the upper bound of its bucket; `undefined`: no success.
 * @param part for example 0.95 */
export function latencyPercentile(
  { latencies }: Pick<AttemptCounts, "latencies">,
  part: number,
): number | undefined {
  const total = latencies.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  let left = Math.ceil(total * part);
  const index = latencies.findIndex((count) => (left -= count) <= 0);
  return latencyBoundsMs[index] ?? latencyBoundsMs.at(-1);
}
