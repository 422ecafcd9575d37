/**
 * The only way to change a task: state, money and webhook in one transaction, guarded by the task's
 * fence.
 */
import { DatabaseError, type Pool, type PoolClient } from "pg";
import { bareRecord } from "../billing/calls/call-record.ts";
import { applyIn } from "../billing/ledger/apply-in.ts";
import { isDatabaseLost } from "../core/database-lost.ts";
import { type TaskCharge, taskDurationMs } from "./work/charge.ts";
import { notifyTask } from "./work/notify.ts";
import { progressIn, statesBefore, transitions, type TaskEvent } from "./state.ts";
import { summaryColumns, type TaskRow } from "./task-row.ts";

/** A change of a task. */
export interface Transition {
  /** The event. If absent, the state stays. */
  readonly event?: TaskEvent;
  /** The vendor's progress, in percent. */
  readonly progress?: number | undefined;
  /** Further columns to write. */
  readonly set?: TransitionColumns;
  /**
   * Releases the lease; the task is due again after this time, or at its deadline. If absent, the
   * lease is kept. A task that ends has none.
   */
  readonly releaseMs?: number;
  /**
   * The charge and call record of a transition that ends the task. {@link applyTransition} writes
   * the duration into the record.
   */
  readonly charge?: TaskCharge;
  /** Writes further rows in the same transaction. None by default. */
  readonly inSameTransaction?: ((transaction: PoolClient) => Promise<void>) | undefined;
}

/** Columns that a transition can write. */
export type TransitionColumns = Partial<{
  readonly vendor: string;
  readonly vendor_model: string;
  readonly credential: string;
  readonly vendor_task_id: string | null;
  readonly poll_count: number;
  readonly failure_count: number;
  readonly cancel_requested: boolean;
  /** JSON text. */
  readonly result: string;
  /** JSON text. */
  readonly usage: string | null;
  readonly error_code: string;
  readonly error: string;
  readonly expire_time: Date | null;
  readonly reported_vendor_task_id: string | null;
  readonly is_late_charge_pending: boolean;
}>;

/** Options of transitions. */
export interface TransitionOptions {
  readonly pool: Pool;
  /**
   * Enqueues the webhook of a change, in its transaction; before its money. {@link notifyTask} by
   * default.
   */
  readonly notify?: (transaction: PoolClient, task: TaskRow) => Promise<void>;
  /** Called if a transition reduces an account below its threshold. Does nothing by default. */
  readonly onLowBalance?: (accountId: string, balanceNanos: bigint) => void;
  /**
   * Called after the commit, if the charge exceeds what the account could pay. Does nothing by
   * default.
   */
  readonly onLoss?: (accountId: string, lossNanos: bigint) => void;
  /** Logs a warning for operators, without secrets. Does nothing by default. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/**
 * Changes a task.
 *
 * @param task as it was read or claimed: its fence and state guard the change
 * @returns the task after the change, or unchanged if it is only rescheduled. Undefined if another
 * process has it, or its state has changed
 * @throws the driver's error; nothing was changed, or the outcome is unknown
 */
export async function applyTransition(
  needs: TransitionOptions,
  task: TaskRow,
  move: Transition,
): Promise<TaskRow | undefined> {
  if (isReschedule(task, move))
    return (await reschedule(needs.pool, task, move)) ? task : undefined;
  try {
    return await change(needs, task, move);
  } catch (error) {
    const isRefused = error instanceof DatabaseError && !isDatabaseLost(error);
    const charge = isRefused ? withLessRecord(move.charge) : undefined;
    if (charge === undefined) throw error;
    // The result and the money are more important than the record.
    needs.warn?.("the end of a task was refused; trying with less of its call record", {
      taskId: task.id,
      err: error,
    });
    return applyTransition(needs, task, { ...move, charge });
  }
}

/** The same charge with a smaller record; undefined if it has no record. */
function withLessRecord(charge: TaskCharge | undefined): TaskCharge | undefined {
  if (charge?.record === undefined) return undefined;
  const { costNanos, record, isBare } = charge;
  return isBare ? { costNanos } : { costNanos, record: bareRecord(record), isBare: true };
}

async function change(
  needs: TransitionOptions,
  task: TaskRow,
  move: Transition,
): Promise<TaskRow | undefined> {
  const update = statementOf(task, move);
  const isAlone = move.charge === undefined && move.inSameTransaction === undefined;
  if (isAlone && task.callback_url === null) {
    return updateRow(needs.pool, update, task);
  }
  let lowBalanceNanos: bigint | undefined;
  let lossNanos: bigint | undefined;
  const moved = await inTransaction(needs.pool, async (transaction) => {
    const row = await updateRow(transaction, update, task);
    if (row === undefined) return undefined;
    if (isNotifiable(task, row)) await (needs.notify ?? notifyTask)(transaction, row);
    await move.inSameTransaction?.(transaction);
    if (move.charge === undefined) return row;
    const { costNanos, record: begun } = move.charge;
    const record = begun && { ...begun, duration_ms: taskDurationMs(row) };
    const settles = [{ id: row.id, costNanos, ...(record && { record }) }];
    // Last before the commit: it locks the account.
    ({ lowBalanceNanos, lossNanos } = await applyIn(transaction, {
      accountId: row.account_id,
      settles,
    }));
    return row;
  });
  if (lowBalanceNanos !== undefined) needs.onLowBalance?.(task.account_id, lowBalanceNanos);
  if (lossNanos !== undefined) needs.onLoss?.(task.account_id, lossNanos);
  return moved;
}

/** Runs the update. The parameters never change and may be long: they are not read again. */
async function updateRow(
  database: Pick<Pool, "query">,
  update: { readonly text: string; readonly values: unknown[] },
  { params }: TaskRow,
): Promise<TaskRow | undefined> {
  const { rows } = await database.query<Omit<TaskRow, "params">>(update);
  return rows[0] && { ...rows[0], params };
}

function isNotifiable(before: TaskRow, after: TaskRow): boolean {
  return after.finish_time !== null || after.progress > before.progress;
}

/** The columns that are JSON texts. */
const jsonColumns = new Set(["result", "usage"]);

function statementOf(task: TaskRow, move: Transition): { text: string; values: unknown[] } {
  const { event, progress, releaseMs, set = {} } = move;
  const from = event === undefined ? [task.state] : statesBefore(event);
  const state = event === undefined ? task.state : transitions[event].to;
  const isEnd = move.charge !== undefined;
  const values: unknown[] = [task.id, task.fence, from, state, progressIn(state, progress)];
  const sets = ["state = $4", "progress = $5"];
  for (const [column, value] of Object.entries(set)) {
    values.push(value);
    sets.push(`${column} = $${values.length}${jsonColumns.has(column) ? "::json" : ""}`);
  }
  // A submit follows: the age of the attempt counts from here.
  if (event === "resubmit" || set.vendor) sets.push("attempt_time = clock_timestamp()");
  if (isEnd) {
    values.push(move.charge?.costNanos.toString());
    sets.push(`cost = $${values.length}`, "finish_time = clock_timestamp()", "lease_until = null");
    // Polls for late charges begin now.
    if (set.is_late_charge_pending) sets.push("next_time = clock_timestamp()");
  } else if (releaseMs !== undefined) {
    values.push(releaseMs);
    const after = `clock_timestamp() + $${values.length} * interval '1 ms'`;
    values.push(task.cancel_requested, task.notification_count);
    // A cancel request or a notification in the meantime makes the task due at once.
    const isNew = `(cancel_requested <> $${values.length - 1}
      or notification_count <> $${values.length})`;
    const next = `case when ${isNew} then clock_timestamp() else ${after} end`;
    sets.push("lease_until = null", `next_time = least(${next}, greatest(deadline, now()))`);
  }
  const text = `update task set ${sets.join(", ")}
    where id = $1 and fence = $2 and state = any($3) returning ${summaryColumns}`;
  return { text, values };
}

/**
 * Runs work in a transaction.
 *
 * @param options.isPipelined whether the pool's statements may be sent together: then `begin` is
 * sent with the first statement of the work. Default false.
 * @throws the error of the work, after a rollback
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  { isPipelined = false }: { readonly isPipelined?: boolean } = {},
): Promise<T> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    const beginning = client.query("begin");
    if (!isPipelined) await beginning;
    const [result] = await Promise.all([work(client), beginning]);
    await client.query("commit");
    return result;
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    // If the rollback fails, the connection is discarded, and the server rolls back.
    const isBack = await client.query("rollback").then(
      () => true,
      () => false,
    );
    if (isBack) failure = undefined;
    throw error;
  } finally {
    client.release(failure);
  }
}

/** Columns that a reschedule may write: they are internal, and nothing else depends on them. */
const counted: ReadonlySet<string> = new Set<keyof TransitionColumns>([
  "poll_count",
  "failure_count",
]);

/** Whether a transition only releases the lease with new counts, without a webhook. */
export function isReschedule(
  { state, progress: before, callback_url: callbackUrl }: TaskRow,
  { event, progress, set = {}, releaseMs, charge, inSameTransaction }: Transition,
): boolean {
  if (event !== undefined || releaseMs === undefined) return false;
  if (charge !== undefined || inSameTransaction !== undefined) return false;
  for (const column in set) if (!counted.has(column)) return false;
  return callbackUrl === null || progressIn(state, progress) <= before;
}

/**
 * Reschedules a task that has not changed since its last poll: the most frequent transition, every
 * few seconds for each of ten thousand tasks. A prepared statement without a result row; the
 * general statement is built each time and returns forty columns. Rows and statements, including
 * those of claims, were two fifths of the allocations of a process with many tasks.
 */
const rescheduleStatement = {
  name: "task_reschedule",
  text: `
    update task set progress = $4, poll_count = $5, failure_count = $6, lease_until = null,
      next_time = least(case
        when cancel_requested <> $7 or notification_count <> $8 then clock_timestamp()
        else clock_timestamp() + $9 * interval '1 ms' end, greatest(deadline, now()))
    where id = $1 and fence = $2 and state = $3`,
} as const;

/** Reschedules a task. Returns whether its fence and state were still the same. */
async function reschedule(pool: Pool, task: TaskRow, move: Transition): Promise<boolean> {
  const { id, fence, state, cancel_requested: isCancelRequested, notification_count } = task;
  const { progress, releaseMs, set = {} } = move;
  const { poll_count: polls = task.poll_count, failure_count: failures = task.failure_count } = set;
  const now = [progressIn(state, progress), polls, failures];
  // A cancel request or a notification in the meantime makes the task due at once.
  const values = [id, fence, state, ...now, isCancelRequested, notification_count, releaseMs];
  return (await pool.query({ ...rescheduleStatement, values })).rowCount === 1;
}
