/** Follows the database's clock where it is set back or forward: tasks and webhooks under way must not end by that. Each look
 * corrects the clock of the process too. */
import type { Pool } from "pg";
import { taskLeaseMs, webhookLeaseMs } from "../core/limits.ts";
import type { CorrectedClock } from "../db/corrected-clock.ts";

/** By how much clocks are corrected all the time, in milliseconds. */
const toleratedMs = 10_000;

/** Options of {@link DatabaseClock}. */
export interface DatabaseClockOptions {
  readonly pool: Pool;
  /** Learns from each look. Default: none does. */
  readonly corrected?: Pick<CorrectedClock, "learn"> | undefined;
  /** Logs what an operator should know, without secrets. Default: nothing. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

interface FollowRow {
  readonly now: Date;
  readonly back: string | null;
  readonly forward: string | null;
}

const followSql = `select clock_timestamp() as now, set_back_ms as back, set_forward_ms as forward
  from clock_follow($1, $2, $3, $4)`;

/** The database's clock, as one process sees it. */
export class DatabaseClock {
  readonly #options: DatabaseClockOptions;
  /** When this process last looked, on the clock of `performance.now()`. */
  #lookedMs: number | undefined;

  constructor(options: DatabaseClockOptions) {
    this.#options = options;
  }

  /**
   * Looks now whether the clock was set, and moves what waits with it. Returns by how much, in milliseconds, in either
   * direction; 0: it was not, or another process has followed.
   *
   * @throws the driver's error
   */
  async follow(): Promise<number> {
    const { pool, corrected, warn } = this.#options;
    const nowMs = performance.now();
    const elapsedMs = this.#lookedMs === undefined ? null : Math.ceil(nowMs - this.#lookedMs);
    const { rows } = await pool.query<FollowRow>(followSql, [
      ...[taskLeaseMs, webhookLeaseMs, toleratedMs],
      elapsedMs,
    ]);
    const databaseMs = rows[0]?.now.getTime() ?? Number.NaN;
    corrected?.learn({ databaseMs, sentMs: nowMs, receivedMs: performance.now() });
    // Of before the question, so that no time is counted as a step.
    this.#lookedMs = nowMs;
    const [setBackMs, setForwardMs] = [Number(rows[0]?.back ?? 0), Number(rows[0]?.forward ?? 0)];
    if (setBackMs > 0) {
      warn?.("the database's clock was set back: tasks and webhooks were moved with it", {
        setBackMs,
      });
    }
    if (setForwardMs > 0) {
      warn?.("the database's clock was set forward: tasks and webhooks were moved with it", {
        setForwardMs,
      });
    }
    return setBackMs + setForwardMs;
  }
}
