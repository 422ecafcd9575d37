/** The one hold of a task: nobody renews it, for it belongs to no process. */
import type { LedgerBatch } from "../billing/apply-in.ts";
import type { KeyCaller } from "../caller.ts";
import { taskHoldTtlMs } from "../config/task-limits.ts";

/** What the ledger is asked for before a task is accepted. @param id the task's, and with it the hold's */
export function taskHold(
  { accountId, keyId, keyLimitNanos }: KeyCaller,
  id: string,
  amountNanos: bigint,
): LedgerBatch {
  const key = keyLimitNanos === undefined ? { keyId } : { keyId, keyLimitNanos };
  return { accountId, holds: [{ id, amountNanos, ...key }], ttlMs: taskHoldTtlMs };
}
