/**
 * Background jobs of result files: expired files are removed, and bytes that no file refers to.
 * SQL: batches of rows under locks.
 */
import type { Pool } from "pg";
import { resultExpireMs, resultMemoryMs } from "../core/limits.ts";
import { periodic, type PeriodicJobs } from "../core/periodic.ts";
import { removeStaleSpools } from "./spool.ts";
import type { ResultStorage } from "./storage.ts";

/** The stores, and the reports of {@link createResultJobs}. */
export interface ResultJobsOptions {
  readonly pool: Pool;
  readonly storages: readonly ResultStorage[];
  readonly spoolFolder: string;
  /** Interval of the job. Default `resultExpireMs`. */
  readonly everyMs?: number;
  /** Logs a warning for operators, without secrets. Does nothing by default. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The jobs of a process. Every node may run them at once. */
export interface ResultJobs extends PeriodicJobs {
  /** Removes expired data now. Returns the numbers of expired tokens and removed blobs. */
  expire(): Promise<{ readonly files: number; readonly blobs: number }>;
}

/** Number of rows per statement: a long statement would delay others. */
const batch = 500;

/**
 * Creates the jobs; {@link PeriodicJobs.start} begins, and the first run also checks that the
 * stores can be used.
 */
export function createResultJobs(options: ResultJobsOptions): ResultJobs {
  const { pool, storages, everyMs = resultExpireMs, warn = () => {} } = options;
  let isStopping = false;
  const expire = async (): Promise<{ files: number; blobs: number }> => {
    const files = await inBatches(() => expireFiles(pool));
    await inBatches(() => forgetFiles(pool));
    let blobs = 0;
    for (const storage of storages) {
      // The first failure ends this run for the store: it is unavailable, and the other blobs would
      // fail alike.
      blobs += await removeLoose(pool, storage, () => isStopping).catch((err: unknown) => {
        warn("removing expired result files failed; trying again later", {
          storage: storage.kind,
          err,
        });
        return 0;
      });
    }
    await removeStaleSpools(options.spoolFolder);
    return { files, blobs };
  };
  let isChecked = false;
  const run = async (): Promise<void> => {
    if (!isChecked) await checkStores(storages, warn);
    isChecked = true;
    if (!isStopping) await expire();
  };
  const onError = (err: unknown): void =>
    warn("expiring result files failed; trying again later", { err });
  const jobs = periodic([{ run, everyMs, onError }]);
  return {
    start: () => jobs.start(),
    stop() {
      isStopping = true;
      return jobs.stop();
    },
    expire,
  };
}

async function checkStores(
  storages: readonly ResultStorage[],
  warn: NonNullable<ResultJobsOptions["warn"]>,
): Promise<void> {
  for (const storage of storages) {
    await storage
      .check()
      .catch((err: unknown) =>
        warn("the store of result files cannot be used", { storage: storage.kind, err }),
      );
  }
}

/** Runs a statement until it finds less than a batch. */
async function inBatches(run: () => Promise<number>): Promise<number> {
  for (let total = 0; ; ) {
    const count = await run();
    total += count;
    if (count < batch) return total;
  }
}

/**
 * Detaches expired tokens from their bytes. Blobs are locked in the order of their keys, so that
 * two nodes cannot wait for each other.
 */
async function expireFiles(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `with gone as (
       select token, storage, sha256 from result_file
       where sha256 is not null and expire_time <= now()
       order by expire_time limit ${batch} for update skip locked),
     locked as (
       select storage, sha256 from result_blob
       where (storage, sha256) in (select storage, sha256 from gone)
       order by storage, sha256 for update),
     loosened as (
       update result_blob b set loose = true from locked l
       where b.storage = l.storage and b.sha256 = l.sha256),
     cleared as (
       update result_file f set storage = null, sha256 = null from gone
       where f.token = gone.token returning 1)
     select count(*)::int as count from cleared`,
  );
  return rows[0]?.count ?? 0;
}

/** Deletes tokens that expired long ago; unready ones as soon as they expire. */
async function forgetFiles(pool: Pool): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from result_file where token = any(array(
       select token from result_file
       where sha256 is null and (not ready or expire_time < now() - $1 * interval '1 ms')
         and expire_time <= now()
       order by expire_time limit ${batch} for update skip locked))`,
    [resultMemoryMs],
  );
  return rowCount ?? 0;
}

/** Removes the blobs that no token refers to any longer. Returns their number. */
async function removeLoose(
  pool: Pool,
  storage: ResultStorage,
  isStopping: () => boolean,
): Promise<number> {
  let removed = 0;
  for (let after = ""; ; ) {
    const { rows } = await pool.query<{ sha256: string }>(
      `select encode(sha256, 'hex') as sha256 from result_blob
       where storage = $1 and loose and sha256 > decode($2, 'hex') order by sha256 limit ${batch}`,
      [storage.kind, after],
    );
    for (const { sha256 } of rows) {
      if (isStopping()) return removed;
      if (await removeBlob(pool, storage, sha256)) removed += 1;
      after = sha256;
    }
    if (rows.length < batch) return removed;
  }
}

/**
 * Removes a blob that no token refers to. One statement locks its row, and another one searches for
 * tokens: it sees tokens that were added during the wait for the lock. The bytes are removed before
 * the lock is released: a store of the same bytes waits meanwhile, and then writes them again. A
 * separate transaction and not `transact`, which would report an unreachable store as an
 * unreachable database.
 */
async function removeBlob(pool: Pool, storage: ResultStorage, sha256: string): Promise<boolean> {
  const client = await pool.connect();
  const key = [storage.kind, sha256];
  const where = "where storage = $1 and sha256 = decode($2, 'hex')";
  let failure: Error | undefined;
  try {
    await client.query("begin");
    const lock = `select 1 from result_blob ${where} and loose for update skip locked`;
    const { rowCount: locked } = await client.query(lock, key);
    const used = `select 1 from result_file ${where} limit 1`;
    const isFree = locked === 1 && (await client.query(used, key)).rowCount === 0;
    if (isFree) {
      await client.query(`delete from result_blob ${where}`, key);
      await storage.remove(sha256);
    } else if (locked === 1) {
      await client.query(`update result_blob set loose = false ${where}`, key);
    }
    await client.query("commit");
    return isFree;
  } catch (error) {
    // The lock is released before the failure is reported, so that the next run finds the blob.
    await client.query("rollback").catch((lost: Error) => (failure = lost));
    throw error;
  } finally {
    // A connection in the middle of a transaction is closed, which rolls it back.
    client.release(failure);
  }
}
