/** Ends tasks because their client asks for it. */
import type { Pool } from "pg";
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import { answering } from "../core/database-lost.ts";
import { chargeOf } from "./charge.ts";
import { noSuchTask, notCancellable } from "./failures.ts";
import { type MoveNeeds, moveTask } from "./transition.ts";
import { isCancellable, isEnded, statesBefore } from "./state.ts";
import type { SeenTask, TaskStore } from "./store.ts";
import { seenColumns, type TaskRow, type WholeTask } from "./task-row.ts";

/** What {@link createCancel} needs. */
export interface CancelOptions extends MoveNeeds {
  readonly pool: Pool;
  readonly store: TaskStore;
  /** Whether a task that was given to a vendor can be stopped there. */
  readonly canStop: (task: TaskRow) => boolean;
  /** Called after a task was asked to end: whoever runs it may look at once. Default: nothing. */
  readonly onAsked?: ((task: SeenTask) => void) | undefined;
  /** Called at the points where a process can die: `cancel.ended`, `cancel.asked`. Default: nothing. */
  readonly at?: ((point: string) => void) | undefined;
}

/**
 * Asks to end a task of an account; of any, where none is said.
 *
 * @returns the task after it: cancelled, ended otherwise, or asked to end
 * @throws GatewayError TASK_NOT_FOUND, TASK_NOT_CANCELLABLE
 */
export type Cancel = (taskId: string, accountId: string | undefined) => Promise<SeenTask>;

/** How often a task may move on while it is tried. Each move is one of a few to its end. */
const triesMax = 10;

/** Makes it. */
export function createCancel(options: CancelOptions): Cancel {
  const { store } = options;
  return async (taskId, accountId) => {
    for (let tries = 0; tries < triesMax; tries++) {
      const task = await store.findWhole(taskId, accountId);
      if (task === undefined) throw noSuchTask();
      if (isEnded(task.state)) return task;
      if (!isCancellable(task.state)) throw notCancellable();
      const moved = await (task.state === "queued" ? end : ask)(task, options);
      if (moved !== undefined) return moved;
    }
    throw notCancellable();
  };
}

/** Nobody has begun it: it ends here. A claim grows its fence, and is then the first. */
async function end(task: WholeTask, options: CancelOptions): Promise<SeenTask | undefined> {
  const ending = CallEnding.CANCELLED;
  const charge = chargeOf(task, { errorCode: "", ending, status: 499, now: new Date() });
  const ended = await answering(moveTask(options, task, { event: "cancel", charge }));
  options.at?.("cancel.ended");
  return ended;
}

/** Under a lease the task is looked at when it is given back; without one it is due at once. */
const askSql = `
  update task set cancel_requested = true,
    next_time = case when lease_until is null then clock_timestamp() else next_time end
  where id = $1 and state = any($2) and state <> 'queued' returning ${seenColumns}`;

/** Whoever runs it is told by the change, and asks the vendor. */
async function ask(
  task: TaskRow,
  { pool, canStop, onAsked, at }: CancelOptions,
): Promise<SeenTask | undefined> {
  if (task.cancel_requested) return task;
  if (!canStop(task)) throw notCancellable();
  const values = [task.id, statesBefore("cancel")];
  const [asked] = (await answering(pool.query<SeenTask>(askSql, values))).rows;
  at?.("cancel.asked");
  if (asked !== undefined) onAsked?.(asked);
  return asked;
}
