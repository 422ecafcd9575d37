/**
 * Compares the clock of this machine with the database's. Nothing corrects clocks: a machine whose
 * clock is wrong is not ready, because it would charge the price of another date (R-OPS-3).
 */
import type { Pool } from "pg";
import { periodic, type PeriodicJobs } from "../core/periodic.ts";
import type { Clock } from "../core/clock.ts";
import { databaseTime } from "../db/partition.ts";

/** The largest accepted difference. NTP keeps clocks within 100 ms. */
const differenceMsMax = 5_000;

/** Interval between comparisons. */
const checkEveryMs = 60_000;

/** Options of {@link ClockCheck}. */
export interface ClockCheckOptions {
  readonly pool: Pick<Pool, "query">;
  readonly clock: Pick<Clock, "now">;
  /** Logs an error for the operator if the clock is wrong. */
  readonly alarm: (message: string, fields: object) => void;
  /** Logs a comparison that failed. */
  readonly warn: (message: string, fields: object) => void;
}

/** The comparison, once at the start and every minute. */
export class ClockCheck {
  readonly jobs: PeriodicJobs;
  readonly #options: ClockCheckOptions;
  #aheadMs = 0;

  constructor(options: ClockCheckOptions) {
    this.#options = options;
    const onError = (error: unknown): void =>
      options.warn("the clock could not be compared with the database's; trying again", {
        err: error,
      });
    const run = (): Promise<void> => this.compare();
    this.jobs = periodic([{ run, everyMs: checkEveryMs, firstMs: checkEveryMs, onError }]);
  }

  /**
   * Time by which the machine's clock was ahead of the database's at the last comparison. Negative
   * if it was behind.
   */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /** Why the process is not ready; `undefined` if the clock is right. */
  get problem(): string | undefined {
    if (Math.abs(this.#aheadMs) <= differenceMsMax) return undefined;
    const seconds = Math.round(Math.abs(this.#aheadMs) / 1_000);
    const side = this.#aheadMs > 0 ? "ahead of" : "behind";
    return `the clock of this machine is ${seconds} s ${side} the database's; set both by NTP`;
  }

  /** Compares now. @throws the driver's error */
  async compare(): Promise<void> {
    const { pool, clock, alarm } = this.#options;
    const before = this.problem;
    const sentMs = clock.now();
    const databaseMs = Number(await databaseTime(pool));
    const receivedMs = clock.now();
    // The database read its clock at some time in between: a reading outside that interval is the
    // minimum difference.
    if (databaseMs < sentMs) this.#aheadMs = sentMs - databaseMs;
    else if (databaseMs > receivedMs) this.#aheadMs = receivedMs - databaseMs;
    else this.#aheadMs = 0;
    const { problem } = this;
    if (before === undefined && problem !== undefined) {
      alarm(`not ready: ${problem}`, { aheadSeconds: this.#aheadMs / 1_000 });
    }
  }
}
