/**
 * The circuit breaker of one route or one credential: when calls stop going there, and when one may
 * probe it. Pure.
 */
import type { BreakerConfig } from "../config/config.ts";

/**
 * The failure of an attempt, for routing:
 *
 * - `connect`: no connection, so nothing was sent.
 * - `server`: 408, 5xx, a broken or unreadable reply.
 * - `silence`: no content in time.
 * - `credential`: the credential or its account's money was refused.
 * - `model`: the vendor does not have the route's model.
 * - `rate_limit`: 429.
 * - `overloaded`: this gateway's limit of calls in flight; nothing was sent.
 * - `limited`: this gateway's limits of the credential; nothing was sent.
 * - `context`: the request is too long for the route.
 * - `unfit`: only other routes can serve the request; nothing was sent.
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

/** Failures in a row that open a breaker, if fewer than the configured number do. */
const silencesMax = 3;

/**
 * The longest cooldown, in multiples of the configured one: with the default of 10 s and its
 * jitter, a vendor that has recovered is used again within half a minute, also if calls are rare.
 * Four times the cooldown took up to 48 s.
 */
export const cooldownGrowthMax = 2;

/** An open breaker. Times in milliseconds of a monotonic clock. */
interface OpenState {
  readonly openedAtMs: number;
  /** When the next probe may begin. */
  readonly probeAtMs: number;
  /** The last pause, without its jitter. */
  readonly cooldownMs: number;
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
  readonly #random: () => number;

  /**
   * @param random from 0 to below 1: pauses vary with it by 20 %, so that processes do not probe in
   * step
   */
  constructor(config: BreakerConfig, random: () => number = Math.random) {
    this.#config = config;
    this.#random = random;
  }

  get config(): BreakerConfig {
    return this.#config;
  }

  /** Undefined if it is closed. */
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
    const probeAtMs = nowMs + this.#pauseMs(cooldownMs);
    this.#set({ openedAtMs: nowMs, probeAtMs, cooldownMs, failure });
    return true;
  }

  /**
   * Takes the probe of a half-open breaker: until it succeeds, the next one may begin after a pause
   * of twice the time, which grows once.
   *
   * @returns whether the caller may make it. True if the breaker is closed
   */
  takeProbe(nowMs: number): boolean {
    if (this.#open === undefined) return true;
    if (nowMs < this.#open.probeAtMs) return false;
    const longestMs = this.#config.cooldownMs * cooldownGrowthMax;
    const cooldownMs = Math.min(2 * this.#open.cooldownMs, longestMs);
    this.#set({ ...this.#open, cooldownMs, probeAtMs: nowMs + this.#pauseMs(cooldownMs) });
    return true;
  }

  /**
   * Records the success of an attempt that began at `startMs`. Returns whether it closes the
   * breaker: one that began before the breaker opened says nothing.
   */
  succeeded(startMs: number): boolean {
    if (this.#open === undefined) {
      if (this.#failures.length > 0) this.#failures = [];
      return false;
    }
    if (startMs < this.#open.openedAtMs) return false;
    this.#set(undefined);
    return true;
  }

  #pauseMs(cooldownMs: number): number {
    return cooldownMs * (0.8 + 0.4 * this.#random());
  }

  #set(open: OpenState | undefined): void {
    this.#open = open;
    this.#failures = [];
  }
}

/** Returns the number of consecutive failures of this kind that open a breaker. */
function neededFor(failure: AttemptFailure, failures: number): number {
  if (failure === "credential" || failure === "model") return 1;
  return failure === "silence" ? Math.min(silencesMax, failures) : failures;
}
