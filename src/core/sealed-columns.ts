/**
 * Columns that are encrypted with the master key, and how a change of the master key encrypts them
 * again.
 */
import type { PoolClient } from "pg";
import { createSealing } from "./sealing.ts";

/** The sealed columns of one table. */
export interface SealedColumns {
  readonly table: string;
  /** The columns of the primary key. */
  readonly key: readonly string[];
  /** The columns with sealed texts; a null stays null. */
  readonly columns: readonly string[];
  /** The column with the account whose key seals the texts. */
  readonly account: string;
  /** The purpose for {@link createSealing}. */
  readonly purpose: string;
  /** The encryption context of a row. */
  readonly context: (row: Readonly<Record<string, unknown>>) => Uint8Array;
}

/** The master key before and after a change, 32 bytes each. */
export interface MasterKeys {
  readonly previous: Uint8Array;
  readonly next: Uint8Array;
}

/** Rows that one statement reads: enough to be fast, few enough to fit in memory. */
const batchRows = 1_000;

/**
 * Encrypts all rows of a table with the next master key, inside the caller's transaction.
 *
 * @returns the number of rows
 * @throws if a text cannot be opened with the previous key
 */
export async function resealColumns(
  client: Pick<PoolClient, "query">,
  sealed: SealedColumns,
  { previous, next }: MasterKeys,
): Promise<number> {
  const { table, key, columns, account, purpose, context } = sealed;
  const from = createSealing(previous, purpose);
  const to = createSealing(next, purpose);
  const assignments = columns.map((name, at) => `${name} = $${key.length + at + 1}`).join(", ");
  const isRow = key.map((name, at) => `${name} = $${at + 1}`).join(" and ");
  const names = [...new Set([account, ...key, ...columns])].join(", ");
  await client.query(
    `declare sealed_row no scroll cursor for select ${names} from ${table}
      where ${columns.map((name) => `${name} is not null`).join(" or ")} for update`,
  );
  let count = 0;
  for (;;) {
    const { rows } = await client.query<Record<string, unknown>>(
      `fetch ${batchRows} from sealed_row`,
    );
    for (const row of rows) {
      const owner = row[account] as string;
      const texts = columns.map((name) => {
        const value = row[name] as Buffer | null;
        if (value === null) return null;
        const text = from.open(owner, context(row), value);
        if (text === undefined) throw new Error(`a row of ${table} has another master key`);
        return to.seal(owner, context(row), text);
      });
      const values = [...key.map((name) => row[name]), ...texts];
      await client.query(`update ${table} set ${assignments} where ${isRow}`, values);
    }
    count += rows.length;
    if (rows.length < batchRows) break;
  }
  await client.query("close sealed_row");
  return count;
}
