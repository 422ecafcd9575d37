/**
 * Records when keys are used, in batches outside the calls, at most once a minute per key. Best
 * effort: losing some with a killed process or an unreachable database is better than failing a
 * call.
 */
import type { Pool } from "pg";

/** Interval of the batches. */
const useWriteMs = 60_000;

/**
 * Maximum number of keys in one batch; uses of further keys are not recorded until it is written.
 */
const keysMax = 50_000;

/** Ordered by id, so that two processes cannot deadlock. Times never decrease. */
const writeStatement =
  "insert into key_use (key_id, use_time) " +
  "select id, clock_timestamp() - age_ms * interval '1 ms' " +
  "from unnest($1::uuid[], $2::float8[]) as used(id, age_ms) order by id " +
  "on conflict (key_id) do update set use_time = greatest(key_use.use_time, excluded.use_time)";

/** The last use of a cached key. One object per key, so that a use writes a single number. */
export interface KeyUse {
  readonly keyId: string;
  /** Time of the last use on the authenticator's clock. */
  usedMs: number;
  /** Whether it is in the next batch already. */
  isNoted: boolean;
}

/** Options of a {@link LastUse}. */
interface LastUseOptions {
  readonly pool: Pool;
  /** A monotonic clock in milliseconds. */
  readonly clock: () => number;
  readonly warn: (message: string, fields: object) => void;
}

/** Keeps `key_use` up to date. */
export class LastUse {
  readonly #options: LastUseOptions;
  #noted = new Map<string, KeyUse>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: LastUseOptions) {
    this.#options = options;
  }

  /** Starts writing every {@link useWriteMs}. */
  start(): void {
    this.#timer ??= setInterval(() => void this.write(), useWriteMs).unref();
  }

  /** Records a use of the key. */
  note(use: KeyUse, nowMs: number): void {
    use.usedMs = nowMs;
    if (use.isNoted || this.#noted.size >= keysMax) return;
    use.isNoted = true;
    this.#noted.set(use.keyId, use);
  }

  /** Writes the pending uses, after a running write. Never rejects. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Writes a last batch and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.write();
  }

  async #write(): Promise<void> {
    const uses = [...this.#noted.values()];
    if (uses.length === 0) return;
    this.#noted = new Map();
    const { pool, clock, warn } = this.#options;
    const nowMs = clock();
    for (const use of uses) use.isNoted = false;
    const ages = uses.map(({ usedMs }) => nowMs - usedMs);
    try {
      await pool.query(writeStatement, [uses.map(({ keyId }) => keyId), ages]);
    } catch (error) {
      warn("the last use of keys could not be recorded", { keys: uses.length, err: error });
    }
  }
}
