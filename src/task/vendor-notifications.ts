/**
 * Hints: somebody tells that there is news of a task at its vendor. The vendor itself at our address for it, or in
 * this process, or in an answer that came too late. A hint only wakes who looks after the task; what is so, the
 * vendor is asked.
 */
import type { Pool, PoolClient } from "pg";
import type { VendorTasks } from "../vendor/task.ts";
import type { TaskRow } from "./task-row.ts";
import type { TaskWork, Work } from "./task-work.ts";
import type { WorkerVendor } from "./worker-options.ts";

/** What the vendor is said to call a task. */
interface Hint {
  readonly vendorTaskId: string;
  /** Whether the vendor has said so itself, in an answer to us. */
  readonly isSure: boolean;
}

/**
 * $1: the token, $2: the vendor's name of it, $3: whether that is sure. Under a lease the task is looked at when it
 * is given back. One that ended while nobody knew whether its vendor has it is looked after again, once for each
 * name: the vendor may charge for it.
 */
const hintSql = `
  update task set hints = hints + 1,
    hint_task_id = case when is_hint_sure then hint_task_id else coalesce($2, hint_task_id) end,
    is_hint_sure = is_hint_sure or $3,
    is_trailing = is_trailing or (state in ('failed', 'cancelled') and vendor_task_id is null
      and $2::text is not null and $2 is distinct from hint_task_id and not is_hint_sure),
    next_time = case when lease_until is null or lease_until <= clock_timestamp()
      then clock_timestamp() else next_time end
  where attempt_token = $1 and state not in ('queued', 'completed')`;

/** Takes a hint. Whoever does so wakes the workers of his process; others find it by themselves. */
export async function hintTask(
  pool: Pick<Pool | PoolClient, "query">,
  attemptToken: string,
  hint?: Hint,
): Promise<void> {
  const { vendorTaskId = null, isSure = false } = hint ?? {};
  await pool.query(hintSql, [attemptToken, vendorTaskId, isSure]);
}

/**
 * What a hint comes to: the vendor's name of the task; `undefined`: it is somebody else's there.
 *
 * @throws HttpFailure, VendorTrouble where the vendor does not say
 */
export async function askHint(
  { callbacks }: Pick<VendorTasks, "callbacks">,
  task: Pick<TaskRow, "attempt_token" | "hint_task_id" | "is_hint_sure">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { attempt_token: token, hint_task_id: id, is_hint_sure: isSure } = task;
  if (id === null || isSure) return id ?? undefined;
  const isOurs = token !== null && (await callbacks?.isOurs(id, token, signal));
  return isOurs ? id : undefined;
}

/* What a vendor's callback comes to. */

/** The vendor's own name of the task; nothing, or nothing that is known by now. */
export async function followHint(
  tools: TaskWork,
  { task, signal }: Work,
  { tasks }: WorkerVendor,
): Promise<{ readonly vendorTaskId: string } | { readonly isOpen: boolean }> {
  try {
    const vendorTaskId = await askHint(tasks, task, signal);
    return vendorTaskId === undefined ? { isOpen: false } : { vendorTaskId };
  } catch (error) {
    if (!signal.aborted) {
      const { id: taskId, vendor } = task;
      tools.warn("a callback could not be checked", { taskId, vendor, err: error });
    }
    return { isOpen: true };
  }
}
