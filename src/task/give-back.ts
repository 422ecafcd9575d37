/**
 * Gives a task back of which nothing is new but how often was asked: what happens to each task that runs, every few
 * seconds, ten thousand times over. One statement that is prepared once and answers with no row: the one for all
 * other changes is written anew each time, and describes and returns forty columns that nobody reads here. Reading rows and
 * writing statements, those of claims with them, was two fifths of what a process allocated that looks after many tasks.
 */
import type { Pool } from "pg";
import type { Move, MoveColumns } from "./move.ts";
import { progressIn } from "./state.ts";
import type { TaskRow } from "./task-row.ts";

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
export async function giveBack(pool: Pool, task: TaskRow, move: Move): Promise<boolean> {
  const { id, fence, state, cancel_requested: isCancelRequested, hints } = task;
  const { progress, releaseMs, set = {} } = move;
  const { poll_count: polls = task.poll_count, failure_count: failures = task.failure_count } = set;
  const now = [progressIn(state, progress), polls, failures];
  // Whoever asked to cancel it meanwhile waits for no pause, nor does whoever told of news.
  const values = [id, fence, state, ...now, isCancelRequested, hints, releaseMs];
  return (await pool.query({ ...statement, values })).rowCount === 1;
}
