/** Cancels tasks on their client's request. */
import type { Pool } from "pg";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { chargeOf } from "./charge.ts";
import { noSuchTask, notCancellable } from "../failures.ts";
import { type TransitionOptions, applyTransition } from "../transition.ts";
import { isCancellable, isEnded, statesBefore } from "../state.ts";
import type { TaskSummary, TaskStore } from "../store.ts";
import { summaryColumns, type TaskRow, type WholeTask } from "../task-row.ts";

/** Options of {@link createCancel}. */
export interface CancelOptions extends TransitionOptions {
  readonly pool: Pool;
  readonly store: TaskStore;
  /** Whether a submitted task can be stopped at its vendor. */
  readonly canStop: (task: TaskRow) => boolean;
  /**
   * Called after a cancel was requested: the process that runs the task may react at once. Does
   * nothing by default.
   */
  readonly onCancelRequested?: ((task: TaskSummary) => void) | undefined;
  /**
   * Called at `cancel.ended` and `cancel.asked`, where tests kill the process. Does nothing by
   * default.
   */
  readonly failpoint?: ((point: string) => void) | undefined;
}

/**
 * Cancels a task of an account; of any account if `accountId` is undefined.
 *
 * @returns the task afterwards: cancelled, ended otherwise, or with its cancel requested
 * @throws GatewayError TASK_NOT_FOUND, TASK_NOT_CANCELLABLE
 */
export type Cancel = (taskId: string, accountId: string | undefined) => Promise<TaskSummary>;

/**
 * Maximum number of attempts of a cancel, because the task may change its state meanwhile. A task
 * has few transitions to its end.
 */
const triesMax = 10;

/** Creates the cancel. */
export function createCancel(options: CancelOptions): Cancel {
  const { store } = options;
  return async (taskId, accountId) => {
    for (let tries = 0; tries < triesMax; tries++) {
      const task = await store.findWhole(taskId, accountId);
      if (task === undefined) throw noSuchTask();
      if (isEnded(task.state)) return task;
      if (!isCancellable(task.state)) throw notCancellable();
      const moved = await (task.state === "queued" ? cancelQueued : requestCancel)(task, options);
      if (moved !== undefined) return moved;
    }
    throw notCancellable();
  };
}

/** Ends a task that no worker has claimed. A concurrent claim raises the fence and wins. */
async function cancelQueued(
  task: WholeTask,
  options: CancelOptions,
): Promise<TaskSummary | undefined> {
  const ending = CallEnding.CANCELLED;
  const charge = chargeOf(task, { errorCode: "", ending, status: 499 });
  const ended = await mapDatabaseLoss(applyTransition(options, task, { event: "cancel", charge }));
  options.failpoint?.("cancel.ended");
  return ended;
}

/** Without a lease the task is due at once; a leased one is checked when its lease is released. */
const requestCancelSql = `
  update task set cancel_requested = true,
    next_time = case when lease_until is null then clock_timestamp() else next_time end
  where id = $1 and state = any($2) and state <> 'queued' returning ${summaryColumns}`;

/**
 * Requests the cancel of a running task: the process that runs it sees the change, and cancels at
 * the vendor.
 */
async function requestCancel(
  task: TaskRow,
  { pool, canStop, onCancelRequested, failpoint }: CancelOptions,
): Promise<TaskSummary | undefined> {
  if (task.cancel_requested) return task;
  if (!canStop(task)) throw notCancellable();
  const values = [task.id, statesBefore("cancel")];
  const [asked] = (await mapDatabaseLoss(pool.query<TaskSummary>(requestCancelSql, values))).rows;
  failpoint?.("cancel.asked");
  if (asked !== undefined) onCancelRequested?.(asked);
  return asked;
}
