/**
 * Vendor notifications: a callback, an event in this process, or a late reply reports that a task
 * may have changed at its vendor. A notification only makes the task due. The vendor is then
 * polled: the content is never trusted.
 */
import type { Pool, PoolClient } from "pg";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { isUuid } from "../../core/uuid.ts";
import type { VendorTasks } from "../../provider/task.ts";
import type { TaskRow } from "../task-row.ts";

/** The vendor's task id in a notification. */
interface VendorReport {
  readonly vendorTaskId: string;
  /** Whether its source is the vendor's reply to the gateway. */
  readonly isConfirmed: boolean;
}

/**
 * $1: the token, $2: the vendor's task id, $3: whether that is confirmed. A leased task is checked
 * when its lease is released. A task that ended while its submit was unknown is polled again for
 * late charges, once for each vendor task id.
 */
const notificationSql = `
  update task set notification_count = notification_count + 1,
    reported_vendor_task_id = case when is_reported_id_confirmed then reported_vendor_task_id
      else coalesce($2, reported_vendor_task_id) end,
    is_reported_id_confirmed = is_reported_id_confirmed or $3,
    is_late_charge_pending = is_late_charge_pending
      or (state in ('failed', 'cancelled') and vendor_task_id is null
      and $2::text is not null and $2 is distinct from reported_vendor_task_id
      and not is_reported_id_confirmed),
    next_time = case when lease_until is null or lease_until <= clock_timestamp()
      then clock_timestamp() else next_time end
  where attempt_token = $1 and state not in ('queued', 'completed')`;

/**
 * Records a notification. The caller wakes the worker of its process; other processes find the task
 * by their scans.
 */
export async function recordNotification(
  pool: Pick<Pool | PoolClient, "query">,
  attemptToken: string,
  report?: VendorReport,
): Promise<void> {
  const { vendorTaskId = null, isConfirmed = false } = report ?? {};
  await pool.query(notificationSql, [attemptToken, vendorTaskId, isConfirmed]);
}

/**
 * Confirms the vendor task id of a notification at the vendor; undefined if that task belongs to
 * another client.
 *
 * @throws HttpFailure, VendorReplyError if the vendor does not answer
 */
export async function confirmVendorTaskId(
  { callbacks }: Pick<VendorTasks, "callbacks">,
  task: Pick<TaskRow, "attempt_token" | "reported_vendor_task_id" | "is_reported_id_confirmed">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const {
    attempt_token: token,
    reported_vendor_task_id: id,
    is_reported_id_confirmed: isConfirmed,
  } = task;
  if (id === null || isConfirmed) return id ?? undefined;
  const isOurs = token !== null && (await callbacks?.isOurs(id, token, signal));
  return isOurs ? id : undefined;
}

/** Options of {@link createCallbacks}. */
interface CallbacksOptions {
  readonly pool: Pick<Pool, "query">;
  /** The task interface of a vendor; undefined if it is not configured in this process. */
  readonly tasksOf: (vendor: string) => VendorTasks | undefined;
  /**
   * Called after a notification: a task may be due. Does nothing by default; workers find it with
   * their next scan.
   */
  readonly onNews?: (() => void) | undefined;
}

/** The callbacks of vendors, by the tokens in their addresses. */
export interface Callbacks {
  /** Whether a task has this token. Checked before the body is read. */
  isKnown(this: void, token: string): Promise<boolean>;
  /** Records the notification of a callback. */
  take(this: void, token: string, body: Buffer): Promise<void>;
}

const vendorSql = "select vendor from task where attempt_token = $1";

/**
 * Creates the callbacks.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE from its functions if the database is unreachable
 */
export function createCallbacks({ pool, tasksOf, onNews }: CallbacksOptions): Callbacks {
  const vendorOf = async (token: string): Promise<string | undefined> => {
    if (!isUuid(token)) return undefined;
    const { rows } = await mapDatabaseLoss(pool.query<{ vendor: string }>(vendorSql, [token]));
    return rows[0]?.vendor;
  };
  return {
    isKnown: async (token) => (await vendorOf(token)) !== undefined,
    async take(token, body) {
      const vendor = await vendorOf(token);
      if (vendor === undefined) return;
      const vendorTaskId = tasksOf(vendor)?.callbacks?.taskIdIn(body);
      const report = vendorTaskId === undefined ? undefined : { vendorTaskId, isConfirmed: false };
      await mapDatabaseLoss(recordNotification(pool, token, report));
      onNews?.();
    },
  };
}
