/**
 * Applies ledger operations inside a caller's transaction: for tasks, whose state and money change
 * together.
 */
import type { EntityManager } from "@mikro-orm/postgresql";
import { holdTtlMs } from "../../core/limits.ts";
import { textArray } from "../../db/array.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import type { CallRow } from "../calls/call-row.ts";
import {
  applyStatement,
  applyValues,
  holdVerdicts,
  lowBalance,
  platformLoss,
  type SettleVerdict,
  settleVerdicts,
} from "./batch.ts";
import type { Row, Statement, StatementValue } from "./ledger-connection.ts";
import type { HoldVerdict } from "./ledger.ts";

/**
 * A transaction that is open: an entity manager inside `transactional`, or a driver's connection.
 */
export type LedgerTransaction =
  | Pick<EntityManager, "execute" | "isInTransaction">
  | { query(statement: Prepared): Promise<{ rows: NonNullable<Row>[] }> };

/** A statement that the server keeps, with its parameters. */
interface Prepared extends Statement {
  readonly values: unknown[];
}

/**
 * Operations of one account. Settlements come first: a hold cannot be ended in the batch that makes
 * it.
 */
export interface LedgerBatch {
  readonly accountId: string;
  /**
   * Default: none. `keyId`: the paying key, a UUID; default: none. `keyLimitNanos`: its total spend
   * limit; default: no limit.
   */
  readonly holds?: readonly {
    readonly id: string;
    readonly amountNanos: bigint;
    readonly keyId?: string;
    readonly keyLimitNanos?: bigint;
  }[];
  /** Default: none. Without a record no call is written. */
  readonly settles?: readonly {
    readonly id: string;
    readonly costNanos: bigint;
    readonly record?: CallRow;
  }[];
  /** Lifetime of the holds. They are not renewed, and belong to no process. Default `holdTtlMs`. */
  readonly ttlMs?: number;
}

/** The verdicts of a batch, in the order of its operations. */
export interface LedgerVerdicts {
  readonly holds: readonly HoldVerdict[];
  readonly settles: readonly SettleVerdict[];
  /** The account's balance, if the batch takes it below its threshold. Valid once committed. */
  readonly lowBalanceNanos: bigint | undefined;
  /**
   * Part of the settlements that the account could not pay, if more than 0. Valid once committed.
   */
  readonly lossNanos: bigint | undefined;
}

/**
 * Applies a batch inside a transaction (READ COMMITTED), which then holds the account's lock: call
 * it last before the commit, and for several accounts in the order of their ids.
 *
 * @throws the driver's error; the transaction is then aborted.
 */
export async function applyIn(
  transaction: LedgerTransaction,
  batch: LedgerBatch,
): Promise<LedgerVerdicts> {
  const { holds = [], settles = [] } = batch;
  const row = await execute(transaction, batchValues(batch));
  return {
    holds: holdVerdicts(row) ?? holds.map(() => ({ admitted: true })),
    settles: settleVerdicts(row) ?? settles.map(() => "settled" as const),
    lowBalanceNanos: lowBalance(row),
    lossNanos: platformLoss(row),
  };
}

/**
 * The parameters of a batch, for a statement that has `applyCall` in it; the account is the first.
 */
export function batchValues({
  accountId,
  holds = [],
  settles = [],
  ttlMs = holdTtlMs,
}: LedgerBatch): StatementValue[] {
  return applyValues(
    accountId,
    {
      holds: holds.map(({ id, amountNanos, keyId = "", keyLimitNanos }) => ({
        id,
        amount: amountNanos.toString(),
        keyId,
        keyLimit: keyLimitNanos?.toString(),
        // The caller's own row, written in the same transaction, has the request id.
        requestId: "",
      })),
      extends: [],
      settles: settles.map(({ id, costNanos, record }) => ({
        id,
        cost: costNanos.toString(),
        record: record && { ...record, id, cost: costNanos.toString(), account_id: accountId },
      })),
    },
    { nodeId: null, nodeName: null, holdTtlMs: ttlMs },
    // An entity manager writes the values into the SQL.
    { encode: textArray },
  );
}

async function execute(transaction: LedgerTransaction, values: unknown[]): Promise<Row> {
  if ("query" in transaction) {
    return (await transaction.query({ ...applyStatement, values })).rows[0];
  }
  if (!transaction.isInTransaction()) throw new Error("applyIn needs an open transaction");
  const text = applyStatement.text.replaceAll(/\$\d+/g, "?");
  const rows: NonNullable<Row>[] = await transaction.execute(text, values);
  return rows[0];
}

interface LateVendorCost {
  readonly accountId: string;
  /** ID of the call and of its hold. */
  readonly callId: string;
  /** Above 0. */
  readonly costNanos: bigint;
}

/**
 * - `booked`: the ledger has it now.
 * - `replayed`: the vendor's cost of this call was booked before; nothing changed.
 * - `unknown`: no such call has ended; nothing changed.
 */
type LateVerdict = "booked" | "replayed" | "unknown";

/**
 * Books a vendor's charge for a call that had already ended: the operator's cost, never the
 * customer's. Once for each call. In a transaction it goes last, for it locks the account.
 */
export async function bookVendorCost(
  database: Queryable,
  { accountId, callId, costNanos }: LateVendorCost,
): Promise<LateVerdict> {
  const { rows } = await database.query<{ verdict: LateVerdict }>(
    "select verdict from ledger_vendor_late($1, $2, $3)",
    [accountId, callId, costNanos.toString()],
  );
  return rows[0]?.verdict ?? "unknown";
}
