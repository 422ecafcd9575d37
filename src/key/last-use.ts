/**
 * Notes when keys are used and writes it down in batches, away from the calls: at most once a minute for a
 * key. Best effort: what a killed process or a database that is away takes with it is not worth a call.
 */
import type { Pool } from "pg";

/** How often the uses are written, in milliseconds. */
export const useWriteMs = 60_000;

/** The most keys of one batch; the uses of more are not noted until it is written. */
const keysMax = 50_000;

/** In order of the ids, so that two processes cannot wait for each other. Never back in time. */
const writeStatement =
  "insert into key_use (key_id, use_time) " +
  "select id, clock_timestamp() - age_ms * interval '1 ms' " +
  "from unnest($1::uuid[], $2::float8[]) as used(id, age_ms) order by id " +
  "on conflict (key_id) do update set use_time = greatest(key_use.use_time, excluded.use_time)";

/** When a key was used last: one for each key that is remembered, so that a use is one number to write. */
export interface KeyUse {
  readonly keyId: string;
  /** On the clock of the authenticator, in milliseconds. */
  usedMs: number;
  /** It waits for the next batch already. */
  isNoted: boolean;
}

/** What a {@link LastUse} needs. */
export interface LastUseOptions {
  readonly pool: Pool;
  /** The time in milliseconds, never going back. */
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

  /** Begins to write every {@link useWriteMs}. */
  start(): void {
    this.#timer ??= setInterval(() => void this.write(), useWriteMs).unref();
  }

  /** Notes that the key is used now. */
  note(use: KeyUse, nowMs: number): void {
    use.usedMs = nowMs;
    if (use.isNoted || this.#noted.size >= keysMax) return;
    use.isNoted = true;
    this.#noted.set(use.keyId, use);
  }

  /** Writes what was noted; after that which is being written. Never rejects. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Ends with a last batch. */
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
      const reason = error instanceof Error ? error.message : String(error);
      warn("when keys were last used could not be written", { keys: uses.length, reason });
    }
  }
}
