/**
 * Removes old months of closed holds, and of calls where the configuration limits them, as whole tables: a deleted row
 * would cost as much as a written one. Ledger entries are never removed.
 */
import { escapeIdentifier, type PoolClient } from "pg";
import { holdKeptDays } from "../config/limits.ts";
import { addMonths, firstId, partitionName } from "../db/partition.ts";
import type { Queryable } from "../db/queryable.ts";
import type { Auditor } from "./ledger/auditor.ts";
import { newestCheckpoint } from "./ledger/checkpoint.ts";

/** See {@link removeOldMonths}. */
export interface RetentionOptions {
  readonly auditor: Auditor;
  /** How many days calls are kept. Default: for ever. */
  readonly callDays?: number | undefined;
  /** The current time. Default: now. */
  readonly now?: Date;
}

/** A table whose months may be removed, with the tables that go with it. */
interface Kept {
  readonly table: "hold" | "call";
  readonly tables: readonly string[];
  readonly days: number;
  /** SQL: whether a month still has to stay, asked with all its tables locked. $1: its first id, $2: the next one's, $3:
   * the number of the newest audited entry. Default: it has not. */
  readonly isNeeded?: string;
}

/** An audit adds each new charge to its key by its hold. An open hold may belong to a process whose clock is wrong. */
const neededHolds = `
exists (select from hold where state = 1 and id >= $1 and id < $2)
  or exists (select from ledger_entry where seq > $3 and kind in (2, 6)
    and coalesce(call_id, txn_id) >= $1 and coalesce(call_id, txn_id) < $2)`;

const dayMs = 24 * 60 * 60 * 1_000;

/** How long to wait for a lock: everybody who comes later waits behind this one, calls too. The next run tries again. */
const lockTimeout = "300ms";

/**
 * Removes the months that are old enough and audited; one process at a time. A month whose tables are in use stays until
 * the next time.
 *
 * @returns the removed partitions, such as `hold_2026_08`
 */
export async function removeOldMonths({
  auditor,
  callDays,
  now = new Date(),
}: RetentionOptions): Promise<readonly string[]> {
  const holds = { table: "hold", tables: ["hold", "hold_step"], days: holdKeptDays } as const;
  const kept: Kept[] = [{ ...holds, isNeeded: neededHolds }];
  if (callDays !== undefined) kept.push({ table: "call", tables: ["call"], days: callDays });
  const removed = await auditor.exclusively(0, async (client) => {
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
    removed.push(...kept.tables.map((table) => partitionName(table, month)));
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
  { table, tables, isNeeded }: Kept,
  { month, next, seq }: Month,
): Promise<boolean> {
  await client.query(`begin; set local lock_timeout = '${lockTimeout}'`);
  try {
    // In the order in which calls lock them. The parents, because a partition cannot be removed without them.
    for (const each of tables) {
      await client.query(`lock table only ${escapeIdentifier(each)} in access exclusive mode`);
    }
    if (
      isNeeded !== undefined &&
      (await asks(client, isNeeded, [firstId(month), firstId(next), seq]))
    ) {
      await client.query("rollback");
      return false;
    }
    for (const each of tables) {
      await client.query(`drop table if exists ${escapeIdentifier(partitionName(each, month))}`);
    }
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
