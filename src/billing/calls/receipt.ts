/** Reads from the database what a receipt is made of. */
import type { StoredCallRow } from "../message.ts";
import type { CanonicalPrice } from "../prices/price-form.ts";
import type { Queryable } from "../../db/queryable.ts";
import type { RowOf } from "../../db/row.ts";
import type { HoldEntity, HoldStepEntity, LedgerEntryEntity } from "../entity.ts";

/** A call with its price, hold and entries. */
export interface ReceiptRows {
  readonly call: StoredCallRow;
  /** The stored form of the price that the call was held with; `undefined`: nothing was held. */
  readonly price: CanonicalPrice | undefined;
  /** `undefined`: nothing was held. */
  readonly hold: HoldRow | undefined;
  readonly steps: readonly StepRow[];
  readonly entries: readonly ReceiptEntryRow[];
}

/** The hold of a call. `state`: 1 open, 2 settled, 3 released, 4 ended for a process that was lost. */
export type HoldRow = RowOf<typeof HoldEntity, "amount" | "state">;

/** What a hold grew by. */
export type StepRow = RowOf<typeof HoldStepEntity, "amount" | "create_time">;

/** An entry of the customer's account (1), or of the platform's loss (6). */
export type ReceiptEntryRow = RowOf<
  typeof LedgerEntryEntity,
  "txn_id" | "account" | "kind" | "amount" | "balance_after" | "create_time" | "reference"
>;

/** A call by its own id, or the newest one of a request id; of one account, or of any. */
export interface ReceiptQuery {
  readonly accountId: string | undefined;
  readonly callId: string | undefined;
  readonly requestId: string;
}

const sql = {
  byCall: "select * from call where id = $1 and ($2::uuid is null or account_id = $2)",
  byRequest:
    "select * from call where request_id = $1 and ($2::uuid is null or account_id = $2) " +
    "order by id desc limit 1",
  price: "select price from price_version where version = $1",
  hold: "select amount, state from hold where id = $1 and account_id = $2",
  steps: "select amount, create_time from hold_step where hold_id = $1 order by n",
  // Apart, each by its own index: with "or" every partition would be read.
  entries: `
select txn_id, account, kind, amount, balance_after, create_time, reference from (
  select * from ledger_entry where txn_id = $1 and account_id = $2
  union all
  select * from ledger_entry where call_id = $1 and account_id = $2
  union all
  select e.* from booking b join ledger_entry e on e.txn_id = b.txn_id
    where b.call_id = $1 and b.account_id = $2 and e.account_id = $2
) e where account in (1, 6) order by create_time, txn_id`,
} as const;

/** Reads the rows of a receipt; `undefined` where there is no such call. */
export async function readReceipt(
  pool: Queryable,
  { accountId, callId, requestId }: ReceiptQuery,
): Promise<ReceiptRows | undefined> {
  const found = await pool.query<StoredCallRow>(callId === undefined ? sql.byRequest : sql.byCall, [
    callId ?? requestId,
    accountId ?? null,
  ]);
  const [call] = found.rows;
  if (call === undefined) return undefined;
  const [prices, holds, steps, entries] = await Promise.all([
    pool.query<{ price: CanonicalPrice }>(sql.price, [call.price_version]),
    pool.query<HoldRow>(sql.hold, [call.id, call.account_id]),
    pool.query<StepRow>(sql.steps, [call.id]),
    pool.query<ReceiptEntryRow>(sql.entries, [call.id, call.account_id]),
  ]);
  return {
    call,
    price: prices.rows[0]?.price,
    hold: holds.rows[0],
    steps: steps.rows,
    entries: entries.rows,
  };
}
