/**
 * Billing's background jobs: recovery of holds, partitions of the coming months, the ledger audit.
 */
import type { Pool } from "pg";
import { periodic, type PeriodicJobs } from "../core/periodic.ts";
import { ensurePartitions, type PartitionedTable } from "../db/partition.ts";
import type { AuditBreach } from "./audit/audit.ts";
import { Auditor, type AuditReport } from "./audit/auditor.ts";
import { exportDays, type ExportOptions } from "./export/export-days.ts";
import type { Failpoint } from "./ledger/failpoints.ts";
import { ledgerTimings, type LedgerTimings } from "./ledger/ledger.ts";
import { removeOldMonths } from "./old-months.ts";

type LogEvent = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/** The database, and the reports of {@link createBillingJobs}. Times: see {@link LedgerTimings}. */
interface BillingJobsOptions extends Partial<LedgerTimings> {
  /** The connections of the jobs. */
  readonly pool: Pool;
  /**
   * The ledger's `nodeId`: a process that has sent heartbeats for long enough may declare silent
   * ones dead. Default: none; then only expired holds and holds of ended processes are recovered.
   */
  readonly nodeId?: string;
  /** Logs warnings for operators, without secrets. Default: no log. */
  readonly warn?: LogEvent;
  /** Logs alarms for operators, such as a wrong ledger. Default: `warn`. */
  readonly alarm?: LogEvent;
  /** Logs information for operators. Default: no log. */
  readonly info?: LogEvent;
  /** Returns the days for which the call log keeps calls. Default: indefinitely. */
  readonly callDays?: (() => number | undefined) | undefined;
  /** Exports days of calls and of the ledger, if `isOn` returns true. Default: never. */
  readonly exports?: DayExports | undefined;
  /** Called when a recovery has taken an account below its threshold. Default: no callback. */
  readonly onLowBalance?: (accountId: string, balanceNanos: bigint) => void;
  /** Called when an account could not pay all that a recovery charged. Default: no callback. */
  readonly onLoss?: (accountId: string, lossNanos: bigint) => void;
  /**
   * Called at each {@link Failpoint} of a recovery; tests kill the process there. Default: no
   * callback.
   */
  readonly failpoint?: Failpoint;
}

/** The export of days, which the configuration can switch on and off. */
export interface DayExports extends Pick<ExportOptions, "store" | "folder"> {
  readonly isOn: () => boolean;
}

/** The jobs of a process. Every node may run them at once. */
export interface BillingJobs extends PeriodicJobs {
  /** Recovers holds now. Returns how many it ended. */
  recoverHolds(): Promise<number>;
  /** Audits the ledger now. Undefined means another process is doing it. */
  audit(): Promise<readonly AuditBreach[] | undefined>;
  /** Number of breaches found by the last audit of this process; 0 before the first. */
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

/** Interval between checks for missing partitions. They are created months ahead. */
const partitionMs = 60 * 60 * 1_000;

/**
 * Interval between audits, and the delay of the first one, so that it does not compete with the
 * first calls.
 */
const auditMs = 60 * 60 * 1_000;
const firstAuditMs = 5 * 60 * 1_000;

/** Delay of the first removal of old months: after an audit. */
const firstRemovalMs = 10 * 60 * 1_000;

/** Delay of the first export: it would compete with the first calls. */
const firstExportMs = 60 * 1_000;

/** Maximum number of breaches in a log line. */
const loggedMax = 10;

/**
 * Creates the jobs; {@link PeriodicJobs.start} begins, with the partitions of the coming months
 * first.
 */
export function createBillingJobs(options: BillingJobsOptions): BillingJobs {
  const { pool, nodeId, failpoint, warn = () => {} } = options;
  const { onLowBalance = () => {}, onLoss = () => {} } = options;
  const { recoveryMs, silentMs, holdTtlMs } = ledgerTimings(options);
  const recovery = { pool, nodeId, silentMs, holdTtlMs, warn, onLowBalance, onLoss, failpoint };
  const auditor = new Auditor(pool);
  const { info = () => {} } = options;
  const audit = createAudit(auditor, { alarm: options.alarm ?? warn, info });
  const failed = (message: string) => (error: unknown) => warn(message, { err: error });
  const stopping = new AbortController();
  const isExporting = (): boolean => options.exports?.isOn() ?? false;
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
      run: () =>
        removeCallMonths(
          { auditor, callDays: options.callDays?.(), isExporting: isExporting() },
          info,
        ),
      everyMs: auditMs,
      firstMs: firstRemovalMs,
      onError: failed("old months could not be removed; trying again in an hour"),
    },
    {
      run: () => exportNow(options, stopping.signal),
      everyMs: auditMs,
      firstMs: firstExportMs,
      onError: failed(
        "calls and ledger entries could not be exported, and stay; trying again in an hour",
      ),
    },
  ]);
  return {
    ...jobs,
    stop() {
      stopping.abort();
      return jobs.stop();
    },
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

/**
 * Logs the checkpoint, which an operator can note elsewhere and pass to `uas ledger audit
 * --expect`.
 */
function logCheckpoint({ checkpoint, isComplete }: AuditReport, info: LogEvent): void {
  const { n, hash, time, entries, sums } = checkpoint;
  info("ledger checkpoint", { checkpoint: n, hash, time, entries, sums, isComplete });
}

async function removeCallMonths(
  options: Parameters<typeof removeOldMonths>[0],
  info: LogEvent,
): Promise<void> {
  const partitions = await removeOldMonths(options);
  if (partitions.length > 0) info("old months were removed", { partitions });
}

async function exportNow(
  { exports, pool, info = () => {} }: BillingJobsOptions,
  signal: AbortSignal,
): Promise<void> {
  if (!exports?.isOn()) return;
  const { store, folder } = exports;
  const days = await exportDays({ pool, store, folder, signal });
  if (days > 0) info("days were exported", { days });
}

async function makePartitions(pool: Pool): Promise<void> {
  await ensurePartitions(pool, billingPartitions);
  await pool.query("select ledger_guard_partitions()");
}

interface RecoveryOptions {
  readonly pool: Pool;
  /** The process that recovers. Undefined if no process is declared dead now. */
  readonly nodeId: string | undefined;
  /** Silence after which a process counts as dead. */
  readonly silentMs: number;
  /** Lifetime of a hold that is not renewed. */
  readonly holdTtlMs: number;
  readonly warn: LogEvent;
  readonly onLowBalance: (accountId: string, balanceNanos: bigint) => void;
  readonly onLoss: (accountId: string, lossNanos: bigint) => void;
  readonly failpoint: Failpoint | undefined;
}

/**
 * The most holds of one query, of either kind. The next query follows at once if there are more.
 */
const recoveryMax = 10_000;

/**
 * Finds the holds to end. $1: the processes that have ended. $2: half of the time after which a
 * silent process counts as dead, in milliseconds. $3: lifetime of a hold, in milliseconds.
 *
 * An expired hold of a living process is ended only if that process was in touch for the lifetime
 * of a hold and did not renew it. If the database's clock is set forward, all holds expire at once,
 * and those of running calls are renewed soon. Without this rule, recovery would end them first,
 * and each stream whose hold has to grow would fail.
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
 * Ends the holds of dead processes, and expired holds, by the database's clock alone. Each account
 * has a separate transaction, which locks the account before its holds, as everywhere.
 *
 * @returns the number of ended holds
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
