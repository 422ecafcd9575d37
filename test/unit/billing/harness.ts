/** A database with billing's tables, and short words for what the tests do with it. */
import { Pool } from "pg";
import { expect } from "vitest";
import {
  applyIn,
  type LedgerBatch,
  type LedgerVerdicts,
} from "../../../src/billing/ledger/apply-in.ts";
import {
  applyStatement,
  applyValues,
  extendVerdicts,
  holdVerdicts,
  lowBalance,
  platformLoss,
  settleVerdicts,
} from "../../../src/billing/ledger/batch.ts";
import type { Row } from "../../../src/billing/ledger/ledger-connection.ts";
import type { CallRow } from "../../../src/billing/calls/call-row.ts";
import { extendItem, holdItem, settleItem } from "../../../src/billing/ledger/account-queue.ts";
import type {
  ExtendOperation,
  HoldOperation,
  HoldVerdict,
} from "../../../src/billing/ledger/ledger.ts";
import { callRow } from "./calls/call-row.ts";
import { auditLedger } from "../../../src/billing/audit/audit.ts";
import { book } from "../../../src/billing/ledger/booking.ts";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { createTestDatabase } from "../../support/database.ts";
import { newId } from "../../../src/core/uuid.ts";

/** Maximum wait of holds in tests that do not concern time, on a busy machine. */
export const holdWaitMs = 60_000;

/** See {@link openBilling}. */
export type Billing = Awaited<ReturnType<typeof openBilling>>;

/**
 * Opens a fresh database. Close it.
 *
 * @param options.hasMonths whether it has the partitions of this and the coming months. Default: it
 * has
 */
export async function openBilling({ hasMonths = true } = {}) {
  const database = await createTestDatabase();
  // As the program's own connections: what is prepared is planned once.
  const options = "-c plan_cache_mode=force_generic_plan";
  const pool = new Pool({ connectionString: database.url, max: 4, options });
  pool.on("error", () => {});
  if (!hasMonths) await dropMonths(pool);
  return {
    url: database.url,
    pool,
    async account(nanos = 0n): Promise<string> {
      const accountId = newId();
      if (nanos > 0n) await topUp(pool, accountId, nanos);
      return accountId;
    },
    apply: (batch: LedgerBatch): Promise<LedgerVerdicts> => applyIn(pool, batch),
    /** Applies a batch as a ledger of the process `nodeId` would (default: of none). */
    send: (batch: SentBatch, nodeId?: string) => send(pool, batch, nodeId),
    balance: (accountId: string) => balance(pool, accountId),
    /** Customer's entries and others by account number: the sums. */
    async sums(): Promise<Record<number, bigint>> {
      const { rows } = await pool.query<{ account: number; sum: string }>(
        "select account, sum(amount) from ledger_entry group by account",
      );
      return Object.fromEntries(rows.map((row) => [row.account, BigInt(row.sum)]));
    },
    async count(table: string, where = "true"): Promise<number> {
      const text = `select count(*)::int as count from ${table} where ${where}`;
      return (await pool.query<{ count: number }>(text)).rows[0]?.count ?? 0;
    },
    /** The entries of a transaction by account number. */
    async entries(id: string): Promise<Record<number, string>> {
      const text = "select account, amount from ledger_entry where txn_id = $1";
      const { rows } = await pool.query<{ account: number; amount: string }>(text, [id]);
      return Object.fromEntries(rows.map((row) => [row.account, row.amount]));
    },
    /** The entries of the corrections of a call by account number. */
    async corrections(callId: string): Promise<Record<number, string>[]> {
      const { rows } = await pool.query<{ entries: Record<number, string> }>(
        `select json_object_agg(account, amount::text) as entries from ledger_entry
           where call_id = $1 and kind = 6 group by txn_id order by txn_id`,
        [callId],
      );
      return rows.map((row) => row.entries);
    },
    /** Makes processes look as if they had been silent, and in touch before that, for `seconds`. */
    async silence(nodeId: string, seconds: number): Promise<void> {
      await pool.query(
        "update node set seen_time = seen_time - $2 * interval '1 s' where id = $1",
        [nodeId, seconds],
      );
    },
    /**
     * Makes holds look as old as if they had expired `seconds` ago, and their processes as if they
     * had been in touch for an hour without renewing them.
     */
    async age(ids: readonly string[], seconds: number): Promise<void> {
      await pool.query(
        `with aged as (
          update open_hold set expires_at = clock_timestamp() - $2 * interval '1 s' where id = any($1)
            returning node_id
        ) update node set steady_time = steady_time - interval '1 hour'
          where id in (select node_id from aged)`,
        [ids, seconds],
      );
    },
    /**
     * Makes the holds of an account, open and ended, look as if budgets had counted them so many
     * days earlier.
     */
    async countEarlier(accountId: string, days: number): Promise<void> {
      const set = `set budget_time = budget_time - interval '${days} days' where account_id = '${accountId}'`;
      // In the role of a replica no trigger refuses to change an entry.
      await pool.query(
        `begin; set local session_replication_role = replica;
          update open_hold ${set}; update ledger_charge ${set}; commit`,
      );
    },
    /**
     * Expects that the audit finds nothing. @param except rules that the test breaks itself.
     * Default: none
     */
    async expectClean(except: readonly string[] = []): Promise<void> {
      const found = await auditLedger(pool);
      expect(found.filter(({ rule }) => !except.includes(rule))).toEqual([]);
    },
    async close(): Promise<void> {
      await pool.end();
      await database.close();
    },
  };
}

/** Leaves the default partitions only. */
async function dropMonths(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name
     from pg_inherits join pg_partitioned_table on partrelid = inhparent where inhrelid <> partdefid`,
  );
  for (const { name } of rows) await pool.query(`drop table ${name}`);
}

/** A batch of one account in short words. */
export interface SentBatch {
  readonly accountId: string;
  readonly settles?: readonly (readonly [id: string, cost: bigint, rest?: Partial<CallRow>])[];
  readonly extends?: readonly Omit<ExtendOperation, "accountId">[];
  readonly holds?: readonly (Omit<HoldOperation, "accountId" | "keyId"> & { keyId?: string })[];
}

async function send(pool: Pool, batch: SentBatch, nodeId: string | null = null) {
  const { accountId, settles = [], extends: grown = [], holds = [] } = batch;
  const waiter = { resolve() {}, reject() {} };
  const items = {
    settles: settles.map(([id, costNanos, rest]) => {
      const record = callRow(id, accountId, { held: "1", ...rest });
      return settleItem({ id, accountId, costNanos, record }, { sinceMs: 0, ...waiter });
    }),
    extends: grown.map((extend) => extendItem({ ...extend, accountId })),
    holds: holds.map((hold) =>
      holdItem({ keyId: "", ...hold, accountId }, { deadlineMs: 0, ...waiter }),
    ),
  };
  const sender = { nodeId, nodeName: nodeId, holdTtlMs: 60_000 };
  const { rows } = await pool.query<NonNullable<Row>>(
    applyStatement.text,
    applyValues(accountId, items, sender),
  );
  return {
    settles: settleVerdicts(rows[0]) ?? settles.map(() => "settled" as const),
    extends: extendVerdicts(rows[0]) ?? grown.map((item) => ({ heldNanos: item.amountNanos })),
    holds: holdVerdicts(rows[0]) ?? holds.map((): HoldVerdict => ({ admitted: true })),
    low: lowBalance(rows[0]),
    loss: platformLoss(rows[0]),
  };
}

/** Pays in. */
export async function topUp(pool: Pool, accountId: string, amountNanos: bigint): Promise<void> {
  const reference = newId();
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
