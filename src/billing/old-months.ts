/**
 * Removes old months of released holds, of the steps of holds, and of calls if the configuration
 * limits them, as whole tables: a deleted row would cost as much as a written one. Ledger entries
 * are never removed.
 */
import { escapeIdentifier, type PoolClient } from "pg";
import { endedHoldKeptDays } from "../core/limits.ts";
import { addMonths, databaseTime, firstId, monthsOf, partitionName } from "../db/partition.ts";
import type { Queryable } from "../db/pool/queryable.ts";
import { Auditor } from "./audit/auditor.ts";
import { newestCheckpoint } from "./audit/checkpoint.ts";
import { exportAgain, unexportedDays } from "./export/call-days.ts";

/** See {@link removeOldMonths}. */
interface RetentionOptions {
  readonly auditor: Auditor;
  /** Days for which calls are kept. Default: indefinitely. */
  readonly callDays?: number | undefined;
  /** Whether a month of calls stays until all of it was exported. Default: false. */
  readonly isExporting?: boolean | undefined;
  /** The current time. Default: the database's clock. */
  readonly now?: Date;
}

/** A table whose months may be removed. */
interface Kept {
  readonly table: "hold_step" | "released_hold" | "call";
  readonly days: number;
  /**
   * SQL condition by which a month stays, evaluated while its table is locked. $1: its first ID,
   * $2: the next month's first ID, $3: the number of the newest audited entry. Default: no
   * condition.
   */
  readonly isNeeded?: string;
  /** Whether a month stays until all of its calls were exported. Default: false. */
  readonly isExporting?: boolean;
}

/**
 * An audit counts the steps of each new charge. An open hold may belong to a process whose clock is
 * wrong.
 */
const neededSteps = `
exists (select from open_hold where id >= $1 and id < $2)
  or exists (select from ended_hold where seq > $3 and steps > 0 and id >= $1 and id < $2)`;

/** An audit expects the steps of a hold to have their hold: they go first. */
const neededHolds = `
not exists (select from retention_floor where name = 'hold_step' and first_id >= $2)
  or exists (select from released_hold where seq > $3 and id >= $1 and id < $2)`;

const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Maximum wait for a lock: every later statement waits behind this one, including those of calls.
 * The next run tries again.
 */
const lockTimeout = "300ms";

/**
 * Removes the months that are old enough and audited; one process at a time. A month whose tables
 * are in use stays until the next time.
 *
 * @returns the removed partitions, such as `call_2026_08`
 */
export async function removeOldMonths({
  auditor,
  callDays,
  isExporting = false,
  now: given,
}: RetentionOptions): Promise<readonly string[]> {
  const kept: Kept[] = [
    { table: "hold_step", days: endedHoldKeptDays, isNeeded: neededSteps },
    { table: "released_hold", days: endedHoldKeptDays, isNeeded: neededHolds },
  ];
  if (callDays !== undefined) {
    kept.push({ table: "call", days: callDays, isExporting });
  }
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
    // Entries that were not audited cannot be audited later. Months are removed in order, so that
    // one floor describes the rest.
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
  { table, isNeeded, isExporting = false }: Kept,
  { month, next, seq }: Month,
): Promise<boolean> {
  await client.query(`begin; set local lock_timeout = '${lockTimeout}'`);
  try {
    if (isExporting && !(await isExported(client, month))) return false;
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

/**
 * Whether each call of the month is in an exported file. Compares with the month locked against
 * writes, which new calls do not notice. Otherwise ends the transaction, and has the days that
 * differ exported again.
 */
async function isExported(client: PoolClient, month: Date): Promise<boolean> {
  const table = escapeIdentifier(partitionName("call", month));
  await client.query(`lock table ${table} in share mode`);
  const days = await unexportedDays(client, month);
  if (days.length === 0) return true;
  await client.query("rollback");
  await exportAgain(client, days);
  return false;
}

async function asks(client: Queryable, condition: string, values: string[]): Promise<boolean> {
  const text = `select ${condition} as found`;
  return (await client.query<{ found: boolean }>(text, values)).rows[0]?.found ?? false;
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "55P03";
}
