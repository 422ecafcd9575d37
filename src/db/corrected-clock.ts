/**
 * The process's clock, corrected by the database's. Rows, prices and expiry of all processes go by one time, although the
 * clock of a machine may be wrong by years, or step while the process runs.
 */
import type { Clock } from "../core/clock.ts";
import { idSource } from "../core/uuid.ts";
import { databaseTime } from "./partition.ts";
import type { Queryable } from "./pool/queryable.ts";

/** By how much a clock may differ from the database's before it is corrected, in milliseconds. NTP keeps clocks within
 * 0.1 s; nothing that goes by this time is finer than some seconds. */
const toleratedMsDefault = 5_000;

/** How much better than the last correction a new measurement must be to replace it, in milliseconds: times do not jitter. */
const jitterMs = 100;

/** Options of {@link CorrectedClock}. */
export interface CorrectedClockOptions {
  /** Logs what an operator should know, without secrets. Default: nothing. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** By how much the process's clock may differ, in milliseconds. Default 5 s; infinite: it is never corrected. */
  readonly toleratedMs?: number;
}

/** One look at the database's clock. */
export interface ClockLook {
  /** The database's time, in milliseconds since 1970. */
  readonly databaseMs: number;
  /** When it was asked for, by `performance.now()`. */
  readonly sentMs: number;
  /** When the answer came, by `performance.now()`. */
  readonly receivedMs: number;
}

/**
 * The corrected clock of a process. It is the process's own one, unless that departs from the steady time: the database's
 * time of the last look, and what has passed since by the monotonic clock. So it is exact where the clocks are right, a
 * step of the process's clock changes nothing, and without the database it goes on.
 */
export class CorrectedClock implements Clock {
  readonly #warn: NonNullable<CorrectedClockOptions["warn"]>;
  readonly #toleratedMs: number;
  /** The steady time at 0 of `performance.now()`. */
  #baseMs = Date.now() - performance.now();
  /** Whether the operator was told that the clocks differ. */
  #isTold = false;

  constructor({ warn = () => {}, toleratedMs = toleratedMsDefault }: CorrectedClockOptions = {}) {
    this.#warn = warn;
    this.#toleratedMs = toleratedMs;
  }

  /** Costs two readings of clocks, which a call does a few times. */
  readonly now = (): number => {
    const ownMs = Date.now();
    const steadyMs = this.#baseMs + performance.now();
    return Math.abs(ownMs - steadyMs) > this.#toleratedMs ? Math.floor(steadyMs) : ownMs;
  };

  readonly newId = idSource(this.now);

  /** By how many milliseconds the process's clock is ahead of the steady time; negative: behind it. */
  get aheadMs(): number {
    return Date.now() - this.#baseMs - performance.now();
  }

  /** Whether the process's clock departs from the steady time. It was set, or the machine slept: look at the database's. */
  get isOff(): boolean {
    return Math.abs(this.aheadMs) > this.#toleratedMs;
  }

  /** Corrects the clock by a look at the database's, and tells the operator once where they differ. */
  learn({ databaseMs, sentMs, receivedMs }: ClockLook): void {
    const doubtMs = (receivedMs - sentMs) / 2;
    const baseMs = databaseMs - (sentMs + doubtMs);
    if (Math.abs(baseMs - this.#baseMs) > doubtMs + jitterMs) this.#baseMs = baseMs;
    if (this.isOff && !this.#isTold) {
      const text =
        "the clock of this machine differs from the database's: times and prices go by the database's; set both by NTP";
      this.#warn(text, { aheadSeconds: Math.round(this.aheadMs / 1_000) });
    }
    this.#isTold = this.isOff;
  }
}

/** Looks at the database's clock once and corrects by it. @throws the driver's error */
export async function correctClock(database: Queryable, clock: CorrectedClock): Promise<void> {
  const sentMs = performance.now();
  const databaseMs = Number(await databaseTime(database));
  clock.learn({ databaseMs, sentMs, receivedMs: performance.now() });
}
