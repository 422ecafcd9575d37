/** The circuit breaker of one route or one credential: when calls stop going there, and when one may probe it. Pure. */
import type { BreakerConfig } from "../../config/config.ts";

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
 * - `context`: the request is too long for the route.
 */
export type AttemptFailure =
  | "connect"
  | "server"
  | "silence"
  | "credential"
  | "model"
  | "rate_limit"
  | "overloaded"
  | "context";

/** Failures in a row that open a breaker, where fewer than the configured number do. */
const silencesMax = 3;

/** The longest cooldown, in multiples of the configured one. */
export const cooldownGrowthMax = 32;

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
