/** What billing does by itself: settles for dead processes, makes partitions, checks the books. */
import type { Pool } from "pg";
import { singly } from "../core/async.ts";
import { ensurePartitions, type PartitionedTable } from "../db/partition.ts";
import { auditAlone, type AuditBreach } from "./ledger/audit.ts";
import type { At } from "./ledger/failpoints.ts";
import { ledgerTimings, type LedgerTimings } from "./ledger/ledger.ts";

type Tell = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/** What {@link createBillingJobs} needs. Times: see {@link LedgerTimings}. */
interface BillingJobsOptions extends Partial<LedgerTimings> {
  /** The plain pool of the database. */
  readonly pool: Pool;
  /** The ledger's `nodeId`: who has been in touch for long enough ends those that are silent. Default: none;
   * then only holds that have expired or whose process has ended are swept. */
  readonly nodeId?: string;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: Tell;
  /** Told what an operator must know: that the books are wrong. Default: `warn`. */
  readonly alarm?: Tell;
  /** Told when a sweep has taken an account below its threshold. Default: nobody. */
  readonly onLowBalance?: (accountId: string, balanceNanos: bigint) => void;
  /** Told of each point that a sweep passes: where tests kill the process. Default: nobody. */
  readonly at?: At;
}

/** The jobs of a process. Every node may run them at once. */
export interface BillingJobs {
  /** Begins. Makes the partitions of the coming months first, in the background. */
  start(): void;
  /** Ends; what is under way is waited for. */
  stop(): Promise<void>;
  /** Sweeps now. Returns how many holds it ended. */
  sweep(): Promise<number>;
  /** Checks the books now. `undefined`: another process is doing it. */
  audit(): Promise<readonly AuditBreach[] | undefined>;
  /** How many rules' breaches the last audit of this process named; 0 before the first. */
  findings(): number;
}

/** The partitioned tables of billing. */
export const billingPartitions: readonly PartitionedTable[] = [
  { table: "ledger_entry", column: "txn_id" },
  { table: "call", column: "id" },
  { table: "hold_step", column: "hold_id" },
];

/** How often partitions are looked after, in milliseconds. There are months of reserve. */
const partitionMs = 60 * 60 * 1_000;

/** How often the books are checked, in milliseconds, and how soon after the start: not in its first rush. */
const auditMs = 60 * 60 * 1_000;
const firstAuditMs = 5 * 60 * 1_000;

/** How many breaches a log line names. */
const toldMax = 10;

/** Makes the jobs; {@link BillingJobs.start} begins. */
export function createBillingJobs(options: BillingJobsOptions): BillingJobs {
  const { pool, warn = () => {} } = options;
  const { sweepMs } = ledgerTimings(options);
  const timers: NodeJS.Timeout[] = [];
  const sweep = (): Promise<number> => sweepHolds(sweepOptions(options, warn));
  const audit = createAudit(pool, options.alarm ?? warn);
  const sweepJob = singly(sweep, (error) => warn("sweeping holds failed", { err: error }));
  const partitionJob = singly(
    () => makePartitions(pool),
    (error) => warn("making partitions failed: tried again in an hour", { err: error }),
  );
  const auditJob = singly(audit.run, (error) =>
    warn("the books could not be checked: tried again in an hour", { err: error }),
  );
  return {
    start() {
      if (timers.length > 0) return;
      void partitionJob();
      timers.push(
        setInterval(() => void sweepJob(), sweepMs),
        setInterval(() => void partitionJob(), partitionMs),
        setInterval(() => void auditJob(), auditMs),
        setTimeout(() => void auditJob(), firstAuditMs),
      );
      for (const timer of timers) timer.unref();
    },
    async stop() {
      for (const timer of timers.splice(0)) clearInterval(timer);
      await Promise.all([sweepJob.ended(), partitionJob.ended(), auditJob.ended()]);
    },
    sweep,
    audit: audit.run,
    findings: audit.findings,
  };
}

function sweepOptions(options: BillingJobsOptions, warn: Tell): SweepOptions {
  const { pool, nodeId, onLowBalance = () => {}, at } = options;
  return { pool, nodeId, silentMs: ledgerTimings(options).silentMs, warn, onLowBalance, at };
}

function createAudit(pool: Pool, alarm: Tell) {
  let findings = 0;
  return {
    findings: () => findings,
    run: async (): Promise<readonly AuditBreach[] | undefined> => {
      const breaches = await auditAlone(pool);
      if (breaches === undefined) return undefined;
      findings = breaches.length;
      if (findings > 0) {
        alarm("the books are wrong", { findings, breaches: breaches.slice(0, toldMax) });
      }
      return breaches;
    },
  };
}

async function makePartitions(pool: Pool): Promise<void> {
  await ensurePartitions(pool, billingPartitions);
  await pool.query("select ledger_guard_partitions()");
}

/* Ends the holds of processes that are dead, and those that have expired. The database's clock alone decides. */

/** What {@link sweepHolds} needs. */
interface SweepOptions {
  /** The plain pool of the database. */
  readonly pool: Pool;
  /** The process that sweeps, while it tells the database that it lives. Default: none; then nobody is taken
   * for dead, and only who was before is swept. */
  readonly nodeId: string | undefined;
  /** How long a process is silent before it is taken for dead, in milliseconds. */
  readonly silentMs: number;
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly onLowBalance: (accountId: string, balanceNanos: bigint) => void;
  readonly at: At | undefined;
}

/** The most holds of one look, of either kind. More are found by the next one, at once. */
const sweepMax = 10_000;

const findStatement = `
select account_id, array_agg(id) as ids from (
  (select account_id, id from hold where state = 1 and expires_at < clock_timestamp()
     order by expires_at limit ${sweepMax})
  union
  (select account_id, id from hold where state = 1 and node_id = any($1::uuid[]) limit ${sweepMax})
) gone group by account_id order by account_id`;

/**
 * Sweeps: each account in a transaction of its own, the account locked before its holds, as everywhere.
 *
 * @returns how many holds it ended.
 */
async function sweepHolds(options: SweepOptions): Promise<number> {
  const { pool, nodeId, silentMs, warn, at } = options;
  const { rows: nodes } = await pool.query<{ ids: string[] | null }>(
    "select ledger_end_silent($1, $2) as ids",
    [nodeId ?? null, silentMs],
  );
  for (let ended = 0; ; ) {
    const { rows } = await pool.query<{ account_id: string; ids: string[] }>(findStatement, [
      nodes[0]?.ids ?? null,
    ]);
    if (rows.length > 0) at?.("sweep.found");
    let found = 0;
    const before = ended;
    for (const { account_id: accountId, ids } of rows) {
      found += ids.length;
      try {
        ended += await sweepAccount(options, accountId, ids);
      } catch (error) {
        // One stuck account must not keep the money of the others.
        warn("the holds of an account could not be swept", { accountId, err: error });
      }
    }
    if (found < sweepMax || ended === before) return ended;
  }
}

async function sweepAccount(
  { pool, onLowBalance, at }: SweepOptions,
  accountId: string,
  ids: string[],
): Promise<number> {
  const answer = pool.query<{ ended: number; low_balance: string | null }>(
    "select ended, low_balance from ledger_recover_holds($1, $2)",
    [accountId, ids],
  );
  at?.("sweep.begun");
  const { rows } = await answer;
  at?.("sweep.done");
  const { ended = 0, low_balance: low = null } = rows[0] ?? {};
  if (low !== null) onLowBalance(accountId, BigInt(low));
  return ended;
}
