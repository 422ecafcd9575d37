/**
 * The one way in which a task changes: state, money and webhook in one transaction, by whoever holds the fence.
 */
import type { Pool, PoolClient } from "pg";
import type { CallRow } from "../billing/calls/call-row.ts";
import { applyIn } from "../billing/ledger/apply-in.ts";
import { tellTask } from "./notify.ts";
import { progressIn, statesBefore, transitions, type TaskEvent } from "./state.ts";
import { seenColumns, type TaskRow } from "./task-row.ts";

/** What a change does to a task. */
export interface Move {
  /** What has happened. Absent: nothing that changes its state. */
  readonly event?: TaskEvent;
  /** What the vendor says, in percent. */
  readonly progress?: number | undefined;
  /** What else is written. */
  readonly set?: MoveColumns;
  /** Gives the lease back; somebody looks again after so many milliseconds, or at the deadline. Absent: it is
   * kept. A task that ends has none. */
  readonly releaseMs?: number;
  /** What it is charged, and the record of it: of moves that end it. */
  readonly charge?: { readonly costNanos: bigint; readonly record: CallRow };
  /** Writes what belongs to it, in its transaction. Default: nothing. */
  readonly within?: ((transaction: PoolClient) => Promise<void>) | undefined;
}

/** Columns that a move can write. */
export type MoveColumns = Partial<{
  readonly vendor: string;
  readonly vendor_model: string;
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
  readonly hint_task_id: string | null;
  readonly is_trailing: boolean;
}>;

/** What moves need. */
export interface MoveNeeds {
  readonly pool: Pool;
  /** Enqueues the webhook of a change, in its transaction; before its money.
   * Default: {@link tellTask}. */
  readonly tell?: (transaction: PoolClient, task: TaskRow) => Promise<void>;
  /** Told when a move takes an account below its threshold. Default: nobody. */
  readonly onLowBalance?: (accountId: string, balanceNanos: bigint) => void;
}

/**
 * Changes a task.
 *
 * @param task as it was read or claimed: the fence and the state that count
 * @returns the task as it is now, and where it is only given back, as it was; `undefined`: it is somebody else's by
 *   now, or has gone on.
 * @throws the driver's error; nothing was changed, or that is not known
 */
export async function moveTask(
  needs: MoveNeeds,
  task: TaskRow,
  move: Move,
): Promise<TaskRow | undefined> {
  if (isGivenBack(task, move)) return (await giveBack(needs.pool, task, move)) ? task : undefined;
  const update = statementOf(task, move);
  const isAlone = move.charge === undefined && move.within === undefined;
  if (isAlone && task.callback_url === null) {
    return moveRow(needs.pool, update, task);
  }
  let lowBalanceNanos: bigint | undefined;
  const moved = await inTransaction(needs.pool, async (transaction) => {
    const row = await moveRow(transaction, update, task);
    if (row === undefined) return undefined;
    if (isNews(task, row)) await (needs.tell ?? tellTask)(transaction, row);
    await move.within?.(transaction);
    if (move.charge === undefined) return row;
    const settles = [{ id: row.id, ...move.charge }];
    // Last before the commit: it locks the account.
    ({ lowBalanceNanos } = await applyIn(transaction, { accountId: row.account_id, settles }));
    return row;
  });
  if (lowBalanceNanos !== undefined) needs.onLowBalance?.(task.account_id, lowBalanceNanos);
  return moved;
}

/** What was asked for never changes, and may be long: it is not read again. */
async function moveRow(
  database: Pick<Pool, "query">,
  update: { readonly text: string; readonly values: unknown[] },
  { params }: TaskRow,
): Promise<TaskRow | undefined> {
  const { rows } = await database.query<Omit<TaskRow, "params">>(update);
  return rows[0] && { ...rows[0], params };
}

function isNews(before: TaskRow, after: TaskRow): boolean {
  return after.finish_time !== null || after.progress > before.progress;
}

/** The columns that are JSON texts. */
const jsonColumns = new Set(["result", "usage"]);

function statementOf(task: TaskRow, move: Move): { text: string; values: unknown[] } {
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
  // A vendor is about to be asked: how long it has had the task counts from here.
  if (event === "resubmit" || set.vendor) sets.push("attempt_time = clock_timestamp()");
  if (isEnd) {
    values.push(move.charge?.costNanos.toString());
    sets.push(`cost = $${values.length}`, "finish_time = clock_timestamp()", "lease_until = null");
    // It is looked after from now on.
    if (set.is_trailing) sets.push("next_time = clock_timestamp()");
  } else if (releaseMs !== undefined) {
    values.push(releaseMs);
    const after = `clock_timestamp() + $${values.length} * interval '1 ms'`;
    values.push(task.cancel_requested, task.hints);
    // Whoever asked to cancel it meanwhile waits for no pause, nor does whoever told of news.
    const isNew = `(cancel_requested <> $${values.length - 1} or hints <> $${values.length})`;
    const next = `case when ${isNew} then clock_timestamp() else ${after} end`;
    sets.push("lease_until = null", `next_time = least(${next}, greatest(deadline, now()))`);
  }
  const text = `update task set ${sets.join(", ")}
    where id = $1 and fence = $2 and state = any($3) returning ${seenColumns}`;
  return { text, values };
}

/**
 * Runs work in a transaction.
 *
 * @param options.isPipelined whether the pool's statements may go out together: then its beginning does with the
 *   first of the work. Default false.
 * @throws what the work throws; nothing of it stays
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
    // A connection that cannot roll back is thrown away, and the server does it.
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

/*
 * Gives a task back of which nothing is new but how often was asked: what happens to each task that runs, every few
 * seconds, ten thousand times over. One statement that is prepared once and answers with no row: the one for all
 * other changes is written anew each time, and describes and returns forty columns that nobody reads here. Reading rows and
 * writing statements, those of claims with them, was two fifths of what a process allocated that looks after many tasks.
 */

/** Columns that nobody outside sees, and nothing else depends on. */
const counted: ReadonlySet<string> = new Set<keyof MoveColumns>(["poll_count", "failure_count"]);

/** Whether a change is no more than that. One that somebody is told of by webhook is more. */
export function isGivenBack(
  { state, progress: before, callback_url: callbackUrl }: TaskRow,
  { event, progress, set = {}, releaseMs, charge, within }: Move,
): boolean {
  if (event !== undefined || releaseMs === undefined) return false;
  if (charge !== undefined || within !== undefined) return false;
  for (const column in set) if (!counted.has(column)) return false;
  return callbackUrl === null || progressIn(state, progress) <= before;
}

const statement = {
  name: "task_give_back",
  text: `
    update task set progress = $4, poll_count = $5, failure_count = $6, lease_until = null,
      next_time = least(case when cancel_requested <> $7 or hints <> $8 then clock_timestamp()
        else clock_timestamp() + $9 * interval '1 ms' end, greatest(deadline, now()))
    where id = $1 and fence = $2 and state = $3`,
} as const;

/** Does it. Whether the task was still where it was known to be. */
async function giveBack(pool: Pool, task: TaskRow, move: Move): Promise<boolean> {
  const { id, fence, state, cancel_requested: isCancelRequested, hints } = task;
  const { progress, releaseMs, set = {} } = move;
  const { poll_count: polls = task.poll_count, failure_count: failures = task.failure_count } = set;
  const now = [progressIn(state, progress), polls, failures];
  // Whoever asked to cancel it meanwhile waits for no pause, nor does whoever told of news.
  const values = [id, fence, state, ...now, isCancelRequested, hints, releaseMs];
  return (await pool.query({ ...statement, values })).rowCount === 1;
}
