/** What billing does by itself: frees the money of dead processes, makes partitions. */
import type { Pool } from "pg";
import { holdSweepMs } from "../config/limits.ts";
import { ensurePartitions, type PartitionedTable } from "../db/partition.ts";
import { singly } from "../singly.ts";

type Warn = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/** What {@link createBillingJobs} needs. */
export interface BillingJobsOptions {
  /** The plain pool of the database. */
  readonly pool: Pool;
  /** How often expired holds are swept, in milliseconds. Default `holdSweepMs`; tests shorten it. */
  readonly sweepMs?: number;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: Warn;
}

/** The jobs of a process. Every node may run them at once. */
export interface BillingJobs {
  /** Begins. Makes the partitions of the coming months first, in the background. */
  start(): void;
  /** Ends; what is under way is waited for. */
  stop(): Promise<void>;
  /** Sweeps now. Returns how many holds it freed. */
  sweep(): Promise<number>;
}

/** The partitioned tables of billing. */
export const billingPartitions: readonly PartitionedTable[] = [
  { table: "ledger_entry", column: "txn_id" },
  { table: "call", column: "id" },
];

/** The most expired holds of one look. More are found by the next one, at once. */
const sweepMax = 10_000;

/** How often partitions are looked after, in milliseconds. There are months of reserve. */
const partitionMs = 60 * 60 * 1_000;

/** Makes the jobs; {@link BillingJobs.start} begins. */
export function createBillingJobs(options: BillingJobsOptions): BillingJobs {
  const { pool, sweepMs = holdSweepMs, warn = () => {} } = options;
  const timers: NodeJS.Timeout[] = [];
  const sweep = (): Promise<number> => sweepHolds(pool, warn);
  const sweepJob = singly(sweep, (error) => warn("sweeping expired holds failed", { err: error }));
  const partitionJob = singly(
    () => makePartitions(pool),
    (error) => warn("making partitions failed: tried again in an hour", { err: error }),
  );
  return {
    start() {
      if (timers.length > 0) return;
      void partitionJob();
      timers.push(
        setInterval(() => void sweepJob(), sweepMs),
        setInterval(() => void partitionJob(), partitionMs),
      );
      for (const timer of timers) timer.unref();
    },
    async stop() {
      for (const timer of timers.splice(0)) clearInterval(timer);
      await Promise.all([sweepJob.ended(), partitionJob.ended()]);
    },
    sweep,
  };
}

/**
 * Frees expired holds: each account in a transaction of its own, the account locked before its holds, as
 * everywhere. The database's clock alone decides.
 */
async function sweepHolds(pool: Pool, warn: Warn): Promise<number> {
  for (let freed = 0; ; ) {
    const { rows } = await pool.query<{ account_id: string; ids: string[] }>(
      `select account_id, array_agg(id) as ids from (
         select account_id, id from hold where state = 1 and expires_at < clock_timestamp()
         order by expires_at limit ${sweepMax}) expired
       group by account_id order by account_id`,
    );
    let found = 0;
    const before = freed;
    for (const { account_id: accountId, ids } of rows) {
      found += ids.length;
      try {
        freed += await sweepAccount(pool, accountId, ids);
      } catch (error) {
        // One stuck account must not keep the money of the others.
        warn("the expired holds of an account could not be swept", { accountId, err: error });
      }
    }
    if (found < sweepMax || freed === before) return freed;
  }
}

async function sweepAccount(pool: Pool, accountId: string, ids: string[]): Promise<number> {
  const { rows } = await pool.query<{ count: number }>("select ledger_sweep($1, $2) as count", [
    accountId,
    ids,
  ]);
  return rows[0]?.count ?? 0;
}

async function makePartitions(pool: Pool): Promise<void> {
  await ensurePartitions(pool, billingPartitions);
  await pool.query("select ledger_guard_partitions()");
}
