/** What a vendor took for a call that was over already: the operator's cost, never its customer's. */
import type { Queryable } from "./queryable.ts";

/** What is to be booked. */
export interface LateVendorCost {
  readonly accountId: string;
  /** The call's id, which is that of its hold. */
  readonly callId: string;
  /** Above 0. */
  readonly costNanos: bigint;
}

/**
 * - `booked`: it is in the books now.
 * - `replayed`: what the vendor took for this call was there before; nothing changed.
 * - `unknown`: no such call has ended; nothing changed.
 */
export type LateVerdict = "booked" | "replayed" | "unknown";

/** Books it, once for each call. In a transaction it goes last: it locks the account. */
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
