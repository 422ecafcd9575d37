/** The background job that deletes old entries of the audit log. */
import type { Pool } from "pg";
import { periodic, type PeriodicJobs } from "../core/periodic.ts";
import { databaseTime, firstId } from "../db/partition.ts";
import { transact } from "../db/pool/transaction.ts";

/** Dependencies of {@link createOperatorJobs}. */
export interface OperatorJobsOptions {
  readonly pool: Pool;
  /** Returns the days for which the audit log keeps entries. Undefined means indefinitely. */
  readonly auditDays: () => number | undefined;
  /** Logs a warning for operators, without secrets. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The jobs of a process. Every node may run them at once. */
interface OperatorJobs extends PeriodicJobs {
  /** Deletes old entries now. */
  expire(): Promise<void>;
}

/** Interval at which old entries are deleted. */
const expireMs = 60 * 60 * 1_000;

const dayMs = 24 * 60 * 60 * 1_000;

/**
 * The age counts by the ID and by the time of the entry: the clock of the process that made the ID
 * may have been wrong. $1: the first ID to keep, $2: days.
 */
const expireSql =
  "delete from audit_entry where id < $1 and create_time < clock_timestamp() - $2 * interval '1 day'";

/** Creates the jobs; {@link PeriodicJobs.start} begins. */
export function createOperatorJobs({ pool, auditDays, warn }: OperatorJobsOptions): OperatorJobs {
  const expire = (): Promise<void> => removeOldEntries(pool, auditDays());
  const onError = (err: unknown): void =>
    warn("deleting old entries of the audit log failed; trying again in an hour", { err });
  return { ...periodic([{ run: expire, everyMs: expireMs, firstMs: expireMs, onError }]), expire };
}

/** The log is append-only otherwise: see `audit_entry_refuse.sql`. */
async function removeOldEntries(pool: Pool, days: number | undefined): Promise<void> {
  if (days === undefined) return;
  await transact(pool, async (client) => {
    const before = new Date(Number(await databaseTime(client)) - days * dayMs);
    await client.query("set local uas.retention = 'audit_entry'");
    await client.query(expireSql, [firstId(before), days]);
  });
}
