/**
 * Monthly partitions of the large tables.
 *
 * Their key is a UUIDv7, whose first 48 bits are the time in milliseconds. So a range of ids is a
 * range of time, and the id alone can be the primary key. A default partition stores rows that no
 * month covers, so that a missing partition is never an error of a call. Months are calendar months
 * in UTC.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseError, escapeIdentifier, escapeLiteral, type Pool, type PoolClient } from "pg";
import type { Queryable } from "./pool/queryable.ts";

/** A range-partitioned table. Its default partition is `<table>_default`. */
export interface PartitionedTable {
  readonly table: string;
  /** The column of UUIDv7s that it is partitioned by. */
  readonly column: string;
}

/** Options of {@link ensurePartitions}. */
export interface PartitionOptions {
  /**
   * Number of months after the current one that have a partition. Default 3: a job that fails for
   * weeks does no harm.
   */
  readonly monthsAhead?: number;
  /** The current time. The database's time by default. */
  readonly now?: Date;
}

/** The ids of one month. */
export interface PartitionBounds {
  /** The first id of the month, inclusive. */
  readonly from: string;
  /** The first id of the next month: exclusive. */
  readonly to: string;
}

/** The lock that prevents two nodes from creating the same partition: any fixed number. */
const partitionLock = 0x7561_7061;

/**
 * Maximum wait for a table's lock. Every later statement waits behind this one, calls too, and a
 * hold has 900 ms: it is better to stop and retry.
 */
const lockTimeout = "300ms";

/**
 * Maximum number of attempts. After that there are still months of reserve, and the default
 * partition.
 */
const triesMax = 5;

/** Pause before the next attempt, so that waiting statements run first. */
const givewayMs = 100;

/** PostgreSQL's code for a lock that was not granted in time. */
const lockNotAvailable = "55P03";

/**
 * Creates the missing partitions of this and the coming months. Safe to repeat, and on two nodes at
 * once. Rows of such a month in the default partition are moved.
 *
 * @returns the names of the created partitions.
 * @throws if a table stays locked; partitions that were already created stay, and the next run
 * creates the rest.
 */
export async function ensurePartitions(
  pool: Pool,
  tables: readonly PartitionedTable[],
  options: PartitionOptions = {},
): Promise<string[]> {
  const { monthsAhead = 3, now = await databaseTime(pool) } = options;
  const made: string[] = [];
  for (const table of tables) {
    for (let ahead = 0; ahead <= monthsAhead; ahead++) {
      const month = addMonths(now, ahead);
      if (await ensurePartition(pool, table, month)) made.push(partitionName(table.table, month));
    }
  }
  return made;
}

/** The ids of the month that `month` lies in. */
export function partitionBounds(month: Date): PartitionBounds {
  return { from: firstId(addMonths(month, 0)), to: firstId(addMonths(month, 1)) };
}

/** The name of the partition for the month that `month` lies in: `call_2026_11`. */
export function partitionName(table: string, month: Date): string {
  return `${table}_${month.toISOString().slice(0, 7).replace("-", "_")}`;
}

/**
 * The statements that create one month's partition and move the month's rows out of the default
 * one. Run them in one transaction.
 */
export function createPartitionSql({ table, column }: PartitionedTable, month: Date): string {
  const { from, to } = partitionBounds(month);
  const [parent, part, rest, key] = [
    table,
    partitionName(table, month),
    `${table}_default`,
    column,
  ].map(escapeIdentifier);
  const low = escapeLiteral(from);
  const high = escapeLiteral(to);
  // The parent is locked first, as in every query: no deadlock. Attaching alone would lock it less.
  // But then a row on its way to the default partition would be refused, because that partition no
  // longer accepts it. With the default partition locked, hardly any query could continue anyway.
  // The triggers of the default partition are disabled meanwhile, since they prevent deletion; the
  // new partition gets its triggers.
  return `
    lock table only ${parent} in access exclusive mode;
    lock table ${rest} in access exclusive mode;
    create table ${part} (like ${parent} including all);
    alter table ${rest} disable trigger user;
    with moved as (delete from ${rest} where ${key} >= ${low} and ${key} < ${high} returning *)
      insert into ${part} select * from moved;
    alter table ${rest} enable trigger user;
    alter table ${parent} attach partition ${part} for values from (${low}) to (${high});`;
}

async function ensurePartition(pool: Pool, table: PartitionedTable, month: Date): Promise<boolean> {
  if (await exists(pool, table.table, partitionName(table.table, month))) return false;
  for (let tries = 1; ; tries++) {
    try {
      return await createPartition(pool, table, month);
    } catch (error) {
      const isLocked = error instanceof DatabaseError && error.code === lockNotAvailable;
      if (!isLocked || tries === triesMax) throw error;
    }
    await sleep(givewayMs);
  }
}

async function createPartition(pool: Pool, table: PartitionedTable, month: Date): Promise<boolean> {
  const client = await pool.connect();
  // The next query reports a connection that breaks between two queries; without a listener the
  // error would end the process.
  client.on("error", ignore);
  try {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock($1)", [partitionLock]);
    const missing = !(await exists(client, table.table, partitionName(table.table, month)));
    if (missing) {
      await client.query(`set local lock_timeout = '${lockTimeout}'`);
      await client.query(createPartitionSql(table, month));
    }
    await client.query("commit");
    client.off("error", ignore);
    client.release();
    return missing;
  } catch (error) {
    // Closes the connection, and with it the transaction.
    client.release(true);
    throw error;
  }
}

function ignore(): void {}

/**
 * Reads the catalogue, not `to_regclass`, which answers from a cache: a commit of another node,
 * made during the wait for the lock, has not reached that cache.
 */
async function exists(client: Pool | PoolClient, table: string, name: string): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    `select exists (
       select from pg_inherits join pg_class on pg_class.oid = inhrelid
       where inhparent = $1::regclass and relname = $2
     ) as found`,
    [escapeIdentifier(table), name],
  );
  return rows[0]?.found ?? false;
}

/** The first moment of the month `months` after the month of `date`. */
export function addMonths(date: Date, months: number): Date {
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months));
}

/** The months of the partitions of a table, oldest first. */
export async function monthsOf(client: Queryable, table: string): Promise<Date[]> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
       where inhparent = $1::regclass and relname ~ '_\\d{4}_\\d{2}$' order by relname`,
    [escapeIdentifier(table)],
  );
  return rows.map(({ name }) => new Date(`${name.slice(-7).replace("_", "-")}-01T00:00:00Z`));
}

/**
 * The time of the database's clock. Deletion by age uses it: the clock of a process may be wrong,
 * and the deleted data would be lost for all processes.
 *
 * @throws the driver's error
 */
export async function databaseTime(database: Queryable): Promise<Date> {
  const { rows } = await database.query<{ now: Date }>("select clock_timestamp() as now");
  if (rows[0] === undefined) throw new Error("the database returned no time");
  return rows[0].now;
}

/**
 * The smallest UUIDv7 of a moment, and a little less: every id of an earlier moment is below it.
 */
export function firstId(date: Date): string {
  const hex = date.getTime().toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
