/** Billing's background jobs: recovery of holds, partitions of the coming months, the ledger audit. */
import { escapeIdentifier, type Pool, type PoolClient } from "pg";
import { endedHoldKeptDays } from "../core/limits.ts";
import { periodic, type PeriodicJobs } from "../core/async.ts";
import {
  addMonths,
  databaseTime,
  ensurePartitions,
  firstId,
  type PartitionedTable,
  partitionName,
} from "../db/partition.ts";
import type { Queryable } from "../db/pool/queryable.ts";
import type { AuditBreach } from "./audit/audit.ts";
import { Auditor, type AuditReport } from "./audit/auditor.ts";
import { newestCheckpoint } from "./audit/checkpoint.ts";
import type { Failpoint } from "./ledger/failpoints.ts";
import { ledgerTimings, type LedgerTimings } from "./ledger/ledger.ts";

type LogEvent = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/** The database, and the reports of {@link createBillingJobs}. Times: see {@link LedgerTimings}. */
interface BillingJobsOptions extends Partial<LedgerTimings> {
  /** The connections of the jobs. */
  readonly pool: Pool;
  /** The ledger's `nodeId`: a process that has sent heartbeats for long enough may declare silent ones dead.
   * Default: none; then only expired holds and those of processes that ended are recovered. */
  readonly nodeId?: string;
  /** Logs what an operator should know, without secrets. Default: nothing. */
  readonly warn?: LogEvent;
  /** Logs what an operator must know: that the ledger is wrong. Default: `warn`. */
  readonly alarm?: LogEvent;
  /** Logs what operators may want to know later. Default: nothing. */
  readonly info?: LogEvent;
  /** How many days the call log keeps calls. Default: for ever. */
  readonly callDays?: number | undefined;
  /** Called when a recovery has taken an account below its threshold. Default: nothing. */
  readonly onLowBalance?: (accountId: string, balanceNanos: bigint) => void;
  /** Called when an account could not pay all that a recovery charged. Default: nothing. */
  readonly onLoss?: (accountId: string, lossNanos: bigint) => void;
  /** Called at each {@link Failpoint} of a recovery, where tests kill the process. Default: nothing. */
  readonly failpoint?: Failpoint;
}

/** The jobs of a process. Every node may run them at once. */
export interface BillingJobs extends PeriodicJobs {
  /** Recovers holds now. Returns how many it ended. */
  recoverHolds(): Promise<number>;
  /** Audits the ledger now. `undefined`: another process is doing it. */
  audit(): Promise<readonly AuditBreach[] | undefined>;
  /** How many breaches the last audit of this process found; 0 before the first. */
  findings(): number;
}

/** The partitioned tables of billing. */
export const billingPartitions: readonly PartitionedTable[] = [
  { table: "ledger_charge", column: "id" },
  { table: "ledger_side", column: "txn_id" },
  { table: "call", column: "id" },
  { table: "hold_step", column: "hold_id" },
  { table: "released_hold", column: "id" },
];

/** How often missing partitions are made, in milliseconds. There are months of reserve. */
const partitionMs = 60 * 60 * 1_000;

/** How often the ledger is audited, in milliseconds, and how soon after the start: not among its first calls. */
const auditMs = 60 * 60 * 1_000;
const firstAuditMs = 5 * 60 * 1_000;

/** How soon after the start old months are removed, in milliseconds: after an audit. */
const firstRemovalMs = 10 * 60 * 1_000;

/** How many breaches a log line names. */
const loggedMax = 10;

/** Creates the jobs; {@link PeriodicJobs.start} begins, with the partitions of the coming months first. */
export function createBillingJobs(options: BillingJobsOptions): BillingJobs {
  const { pool, nodeId, failpoint, warn = () => {} } = options;
  const { onLowBalance = () => {}, onLoss = () => {} } = options;
  const { recoveryMs, silentMs, holdTtlMs } = ledgerTimings(options);
  const recovery = { pool, nodeId, silentMs, holdTtlMs, warn, onLowBalance, onLoss, failpoint };
  const auditor = new Auditor(pool);
  const { info = () => {} } = options;
  const audit = createAudit(auditor, { alarm: options.alarm ?? warn, info });
  const failed = (message: string) => (error: unknown) => warn(message, { err: error });
  const jobs = periodic([
    {
      run: () => makePartitions(pool),
      everyMs: partitionMs,
      onError: failed("creating partitions failed; trying again in an hour"),
    },
    {
      run: () => recoverHolds(recovery),
      everyMs: recoveryMs,
      firstMs: recoveryMs,
      onError: failed("recovering holds failed; trying again"),
    },
    {
      run: audit.run,
      everyMs: auditMs,
      firstMs: firstAuditMs,
      onError: failed("the ledger could not be audited; trying again in an hour"),
    },
    {
      run: () => removeCallMonths(auditor, options.callDays, info),
      everyMs: auditMs,
      firstMs: firstRemovalMs,
      onError: failed("old months could not be removed; trying again in an hour"),
    },
  ]);
  return {
    ...jobs,
    recoverHolds: () => recoverHolds(recovery),
    audit: audit.run,
    findings: audit.findings,
  };
}

function createAudit(
  auditor: Auditor,
  { alarm, info }: { readonly alarm: LogEvent; readonly info: LogEvent },
) {
  let findings = 0;
  return {
    findings: () => findings,
    run: async (): Promise<readonly AuditBreach[] | undefined> => {
      const report = await auditor.run();
      if (report === undefined) return undefined;
      const { breaches } = report;
      findings = breaches.length;
      logCheckpoint(report, info);
      if (findings > 0) {
        alarm("the ledger is wrong", { findings, breaches: breaches.slice(0, loggedMax) });
      }
      return breaches;
    },
  };
}

/** Logs the checkpoint, which an operator can note elsewhere and pass to `uas ledger audit --expect`. */
function logCheckpoint({ checkpoint, isComplete }: AuditReport, info: LogEvent): void {
  const { n, hash, time, entries, sums } = checkpoint;
  info("ledger checkpoint", { checkpoint: n, hash, time, entries, sums, isComplete });
}

async function removeCallMonths(
  auditor: Auditor,
  callDays: number | undefined,
  info: LogEvent,
): Promise<void> {
  const partitions = await removeOldMonths({ auditor, callDays });
  if (partitions.length > 0) info("old months were removed", { partitions });
}

async function makePartitions(pool: Pool): Promise<void> {
  await ensurePartitions(pool, billingPartitions);
  await pool.query("select ledger_guard_partitions()");
}

interface RecoveryOptions {
  readonly pool: Pool;
  /** The process that recovers. `undefined`: no process is declared dead now. */
  readonly nodeId: string | undefined;
  /** How long a process is silent before it counts as dead, in milliseconds. */
  readonly silentMs: number;
  /** How long a hold lives that is not renewed, in milliseconds. */
  readonly holdTtlMs: number;
  readonly warn: LogEvent;
  readonly onLowBalance: (accountId: string, balanceNanos: bigint) => void;
  readonly onLoss: (accountId: string, lossNanos: bigint) => void;
  readonly failpoint: Failpoint | undefined;
}

/** The most holds of one query, of either kind. The next query follows at once where there are more. */
const recoveryMax = 10_000;

/**
 * Finds the holds to end. $1: the processes that have ended. $2: half of the time after which a silent process counts as
 * dead, in milliseconds. $3: how long a hold lives, in milliseconds.
 *
 * An expired hold of a living process is ended only where that process was in touch for the life of a hold and did not
 * renew it. If the database's clock is set forward, all holds expire at once, and those of running calls are renewed soon.
 * Without that, recovery would end them first, and each stream whose hold has to grow would fail.
 */
const findStatement = `
select account_id, array_agg(id) as ids from (
  (select account_id, id from open_hold h where expires_at < clock_timestamp()
     and not exists (select from node n where n.id = h.node_id and n.ended is null
       and (n.seen_time < clock_timestamp() - $2 * interval '1 ms'
         or n.steady_time > clock_timestamp() - $3 * interval '1 ms'))
     order by expires_at limit ${recoveryMax})
  union
  (select account_id, id from open_hold where node_id = any($1::uuid[]) limit ${recoveryMax})
) gone group by account_id order by account_id`;

/**
 * Ends the holds of dead processes, and expired ones, by the database's clock alone. Each account has a transaction of
 * its own, which locks the account before its holds, as everywhere.
 *
 * @returns how many holds it ended.
 */
async function recoverHolds(options: RecoveryOptions): Promise<number> {
  const { pool, nodeId, silentMs, holdTtlMs, warn, failpoint } = options;
  const { rows: nodes } = await pool.query<{ ids: string[] | null }>(
    "select ledger_end_silent($1, $2) as ids",
    [nodeId ?? null, silentMs],
  );
  for (let ended = 0; ; ) {
    const { rows } = await pool.query<{ account_id: string; ids: string[] }>(findStatement, [
      nodes[0]?.ids ?? null,
      silentMs / 2,
      holdTtlMs,
    ]);
    if (rows.length > 0) failpoint?.("recovery.found");
    let found = 0;
    const before = ended;
    for (const { account_id: accountId, ids } of rows) {
      found += ids.length;
      try {
        ended += await recoverAccount(options, accountId, ids);
      } catch (error) {
        // One stuck account must not keep the money of the others.
        warn("the holds of an account could not be recovered", { accountId, err: error });
      }
    }
    if (found < recoveryMax || ended === before) return ended;
  }
}

interface RecoveredRow {
  readonly ended: number;
  readonly low_balance: string | null;
  readonly platform_loss: string | null;
}

async function recoverAccount(
  { pool, onLowBalance, onLoss, failpoint }: RecoveryOptions,
  accountId: string,
  ids: string[],
): Promise<number> {
  const answer = pool.query<RecoveredRow>(
    "select ended, low_balance, platform_loss from ledger_recover_holds($1, $2)",
    [accountId, ids],
  );
  failpoint?.("recovery.begun");
  const { rows } = await answer;
  failpoint?.("recovery.done");
  const { ended = 0, low_balance: low = null, platform_loss: loss = null } = rows[0] ?? {};
  if (low !== null) onLowBalance(accountId, BigInt(low));
  if (loss !== null) onLoss(accountId, BigInt(loss));
  return ended;
}

// Removes old months of released holds, of the steps of holds, and of calls where the configuration limits them, as whole
// tables: a deleted row would cost as much as a written one. Ledger entries are never removed.

/** See {@link removeOldMonths}. */
interface RetentionOptions {
  readonly auditor: Auditor;
  /** How many days calls are kept. Default: for ever. */
  readonly callDays?: number | undefined;
  /** The current time. Default: that of the database's clock. */
  readonly now?: Date;
}

/** A table whose months may be removed. */
interface Kept {
  readonly table: "hold_step" | "released_hold" | "call";
  readonly days: number;
  /** SQL: whether a month still has to stay, asked with its table locked. $1: its first id, $2: the next one's, $3: the
   * number of the newest audited entry. Default: it has not. */
  readonly isNeeded?: string;
}

/** An audit counts the steps of each new charge. An open hold may belong to a process whose clock is wrong. */
const neededSteps = `
exists (select from open_hold where id >= $1 and id < $2)
  or exists (select from ended_hold where seq > $3 and steps > 0 and id >= $1 and id < $2)`;

/** An audit expects the steps of a hold to have their hold: they go first. */
const neededHolds = `
not exists (select from retention_floor where name = 'hold_step' and first_id >= $2)
  or exists (select from released_hold where seq > $3 and id >= $1 and id < $2)`;

const dayMs = 24 * 60 * 60 * 1_000;

/** How long to wait for a lock: everybody who comes later waits behind this one, calls too. The next run tries again. */
const lockTimeout = "300ms";

/**
 * Removes the months that are old enough and audited; one process at a time. A month whose tables are in use stays until
 * the next time.
 *
 * @returns the removed partitions, such as `call_2026_08`
 */
export async function removeOldMonths({
  auditor,
  callDays,
  now: given,
}: RetentionOptions): Promise<readonly string[]> {
  const kept: Kept[] = [
    { table: "hold_step", days: endedHoldKeptDays, isNeeded: neededSteps },
    { table: "released_hold", days: endedHoldKeptDays, isNeeded: neededHolds },
  ];
  if (callDays !== undefined) kept.push({ table: "call", days: callDays });
  const removed = await auditor.exclusively(0, async (client) => {
    const now = given ?? (await databaseTime(client));
    const names: string[] = [];
    for (const each of kept) names.push(...(await removeMonths(client, each, now)));
    return names;
  });
  return removed ?? [];
}

async function removeMonths(client: PoolClient, kept: Kept, now: Date): Promise<string[]> {
  const { seq, holdId } = await newestCheckpoint(client);
  const removed: string[] = [];
  for (const month of await monthsOf(client, kept.table)) {
    const next = addMonths(month, 1);
    const isOld = next.getTime() + kept.days * dayMs <= now.getTime();
    // What was not audited cannot be audited later. Months go in their order: one floor says what is left.
    if (!isOld || firstId(next) > holdId) break;
    if (!(await removeMonth(client, kept, { month, next, seq }))) break;
    removed.push(partitionName(kept.table, month));
  }
  return removed;
}

interface Month {
  readonly month: Date;
  readonly next: Date;
  readonly seq: string;
}

async function removeMonth(
  client: PoolClient,
  { table, isNeeded }: Kept,
  { month, next, seq }: Month,
): Promise<boolean> {
  await client.query(`begin; set local lock_timeout = '${lockTimeout}'`);
  try {
    // The parent, because a partition cannot be removed without it.
    await client.query(`lock table only ${escapeIdentifier(table)} in access exclusive mode`);
    const values = [firstId(month), firstId(next), seq];
    if (isNeeded !== undefined && (await asks(client, isNeeded, values))) {
      await client.query("rollback");
      return false;
    }
    await client.query(`drop table if exists ${escapeIdentifier(partitionName(table, month))}`);
    await client.query(
      "insert into retention_floor as f (name, first_id) values ($1, $2) " +
        "on conflict (name) do update set first_id = greatest(f.first_id::text, $2::text)::uuid",
      [table, firstId(next)],
    );
    await client.query("commit");
    return true;
  } catch (error) {
    await client.query("rollback");
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

async function asks(client: Queryable, condition: string, values: string[]): Promise<boolean> {
  const text = `select ${condition} as found`;
  return (await client.query<{ found: boolean }>(text, values)).rows[0]?.found ?? false;
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "55P03";
}

/** The months of the partitions of a table, oldest first. */
async function monthsOf(client: Queryable, table: string): Promise<Date[]> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
       where inhparent = $1::regclass and relname ~ '_\\d{4}_\\d{2}$' order by relname`,
    [escapeIdentifier(table)],
  );
  return rows.map(({ name }) => new Date(`${name.slice(-7).replace("_", "-")}-01T00:00:00Z`));
}
