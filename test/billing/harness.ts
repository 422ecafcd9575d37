/** A database with billing's tables, and short words for what the tests do with it. */
import { randomUUIDv7 } from "node:crypto";
import { Pool } from "pg";
import { expect } from "vitest";
import { applyIn, type LedgerBatch, type LedgerVerdicts } from "../../src/billing/apply-in.ts";
import { auditLedger } from "../../src/billing/audit.ts";
import { book } from "../../src/billing/booking.ts";
import { LedgerKind } from "../../gen/uas/billing/v1/billing_pb.ts";
import { createTestDatabase } from "../support/database.ts";

/** How long holds of tests that are not about time may wait, in milliseconds: machines can be busy. */
export const holdWaitMs = 60_000;

/** See {@link openBilling}. */
export type Billing = Awaited<ReturnType<typeof openBilling>>;

/** Opens a fresh database. Close it. */
export async function openBilling() {
  const database = await createTestDatabase();
  const pool = new Pool({ connectionString: database.url, max: 4 });
  pool.on("error", () => {});
  return {
    url: database.url,
    pool,
    async account(nanos = 0n): Promise<string> {
      const accountId = randomUUIDv7();
      if (nanos > 0n) await topUp(pool, accountId, nanos);
      return accountId;
    },
    apply: (batch: LedgerBatch): Promise<LedgerVerdicts> => applyIn(pool, batch),
    balance: (accountId: string) => balance(pool, accountId),
    /** Customer's entries and others by account number: the sums. */
    async sums(): Promise<Record<number, bigint>> {
      const { rows } = await pool.query<{ account: number; sum: string }>(
        "select account, sum(amount) from ledger_entry group by account",
      );
      return Object.fromEntries(rows.map((row) => [row.account, BigInt(row.sum)]));
    },
    async count(table: "call" | "hold" | "ledger_entry", where = "true"): Promise<number> {
      const text = `select count(*)::int as count from ${table} where ${where}`;
      return (await pool.query<{ count: number }>(text)).rows[0]?.count ?? 0;
    },
    /** Makes holds look as old as if they had expired `seconds` ago. */
    async age(ids: readonly string[], seconds: number): Promise<void> {
      await pool.query(
        "update hold set expires_at = clock_timestamp() - $2 * interval '1 s' where id = any($1)",
        [ids, seconds],
      );
    },
    async expectClean(): Promise<void> {
      expect(await auditLedger(pool)).toEqual([]);
    },
    async close(): Promise<void> {
      await pool.end();
      await database.close();
    },
  };
}

/** Pays in. */
export async function topUp(pool: Pool, accountId: string, amountNanos: bigint): Promise<void> {
  const reference = randomUUIDv7();
  await book(pool, {
    kind: LedgerKind.TOP_UP,
    accountId,
    amountNanos,
    reference,
    callId: undefined,
  });
}

async function balance(
  pool: Pool,
  accountId: string,
): Promise<{ available: bigint; held: bigint }> {
  const { rows } = await pool.query<{ available: string; held: string }>(
    "select available, held from balance where account_id = $1",
    [accountId],
  );
  return { available: BigInt(rows[0]?.available ?? 0), held: BigInt(rows[0]?.held ?? 0) };
}
