/** What the task room needs by itself: that old tasks go, and that an operator sees what there is. */
import type { Pool } from "pg";
import { taskKeptMs } from "../config/limits.ts";
import { singly } from "../core/async.ts";
import { isEnded, type TaskState, taskStates } from "./state.ts";

/** How many tasks there are in each state but the ends, of all processes. */
export type TaskCounts = ReadonlyMap<TaskState, number>;

/** What {@link createTaskJobs} needs. */
export interface TaskJobsOptions {
  readonly pool: Pool;
  /** Told of what was counted. Default: nobody. */
  readonly onCount?: (counts: TaskCounts) => void;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The jobs of a process. Every one may run them. */
export interface TaskJobs {
  /** Begins, with a first run in the background. */
  start(): void;
  /** Ends; what is under way is waited for. */
  stop(): Promise<void>;
  /** Deletes what is older than its time, now. Returns how many tasks that were. */
  expire(): Promise<number>;
  /** Counts now. */
  count(): Promise<TaskCounts>;
}

/** How often what is too old is deleted, in milliseconds. */
const expireEveryMs = 10 * 60 * 1_000;

/** How often is counted, in milliseconds. */
const countEveryMs = 15_000;

/** How many tasks go in one statement: a long one would hold up others. */
const batch = 1_000;

/** An id begins with its time; one that runs that long is not old. Events go after their tasks. */
const expireSql = `
  delete from task where id in (
    select id from task where id < $1 and finish_time < now() - $2 * interval '1 ms'
    order by id limit ${batch} for update skip locked)
  returning id`;

const countSql = `select state, count(*)::int as count from task
  where state in ('queued', 'submitting', 'submit_unknown', 'running', 'finalizing') group by state`;

/** Makes the jobs; {@link TaskJobs.start} begins. */
export function createTaskJobs(options: TaskJobsOptions): TaskJobs {
  const { pool, onCount = () => {}, warn = () => {} } = options;
  const timers: NodeJS.Timeout[] = [];
  const count = async (): Promise<TaskCounts> => {
    const { rows } = await pool.query<{ state: TaskState; count: number }>(countSql);
    const found = new Map(rows.map((row) => [row.state, row.count]));
    const open = taskStates.filter((state) => !isEnded(state));
    const counts = new Map(open.map((state) => [state, found.get(state) ?? 0]));
    onCount(counts);
    return counts;
  };
  const failed = (what: string) => (error: unknown) =>
    warn(`${what} failed: tried again`, { err: error });
  const counting = singly(count, failed("counting tasks"));
  const expiring = singly(() => expire(pool), failed("deleting old tasks"));
  return {
    count,
    expire: () => expire(pool),
    start() {
      timers.push(setInterval(() => void counting(), countEveryMs));
      timers.push(setInterval(() => void expiring(), expireEveryMs));
      for (const timer of timers) timer.unref();
      void counting();
      void expiring();
    },
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all([counting.ended(), expiring.ended()]);
    },
  };
}

async function expire(pool: Pool): Promise<number> {
  const before = firstIdAt(Date.now() - taskKeptMs);
  for (let deleted = 0; ; ) {
    const { rows } = await pool.query<{ id: string }>(expireSql, [before, taskKeptMs]);
    const ids = rows.map(({ id }) => id);
    if (ids.length > 0) await pool.query("delete from task_event where task_id = any($1)", [ids]);
    deleted += ids.length;
    if (ids.length < batch) return deleted;
  }
}

/** The lowest UUIDv7 of a moment. */
function firstIdAt(timeMs: number): string {
  const hex = Math.max(0, timeMs).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}
