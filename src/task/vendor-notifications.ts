/**
 * Vendor notifications: a callback, an event in this process, or a late reply says that a task may have changed at its
 * vendor. A notification only makes the task due. The vendor is then polled: the content is never trusted.
 */
import type { Pool, PoolClient } from "pg";
import type { VendorTasks } from "../vendor/task.ts";
import type { TaskRow } from "./task-row.ts";

/** The vendor's task id in a notification. */
interface Hint {
  readonly vendorTaskId: string;
  /** Whether it comes from the vendor's own reply to us. */
  readonly isSure: boolean;
}

/**
 * $1: the token, $2: the vendor's task id, $3: whether that is sure. A leased task is checked when its lease is given
 * back. A task that ended while its submit was unknown is polled again for late charges, once for each vendor task id.
 */
const notificationSql = `
  update task set hints = hints + 1,
    hint_task_id = case when is_hint_sure then hint_task_id else coalesce($2, hint_task_id) end,
    is_hint_sure = is_hint_sure or $3,
    is_trailing = is_trailing or (state in ('failed', 'cancelled') and vendor_task_id is null
      and $2::text is not null and $2 is distinct from hint_task_id and not is_hint_sure),
    next_time = case when lease_until is null or lease_until <= clock_timestamp()
      then clock_timestamp() else next_time end
  where attempt_token = $1 and state not in ('queued', 'completed')`;

/** Records a notification. The caller wakes the worker of its process; other processes find the task by their scans. */
export async function recordNotification(
  pool: Pick<Pool | PoolClient, "query">,
  attemptToken: string,
  hint?: Hint,
): Promise<void> {
  const { vendorTaskId = null, isSure = false } = hint ?? {};
  await pool.query(notificationSql, [attemptToken, vendorTaskId, isSure]);
}

/**
 * Confirms the vendor task id of a notification at the vendor; `undefined`: that task is not ours.
 *
 * @throws HttpFailure, VendorReplyError where the vendor does not answer
 */
export async function confirmVendorTaskId(
  { callbacks }: Pick<VendorTasks, "callbacks">,
  task: Pick<TaskRow, "attempt_token" | "hint_task_id" | "is_hint_sure">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { attempt_token: token, hint_task_id: id, is_hint_sure: isSure } = task;
  if (id === null || isSure) return id ?? undefined;
  const isOurs = token !== null && (await callbacks?.isOurs(id, token, signal));
  return isOurs ? id : undefined;
}
