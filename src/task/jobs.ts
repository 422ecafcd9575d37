/** The task room's background jobs: they delete old tasks, and count open ones for the operator. */
import type { Pool } from "pg";
import { taskKeptMs } from "../core/limits.ts";
import { periodic, type PeriodicJobs } from "../core/periodic.ts";
import { databaseTime, firstId } from "../db/partition.ts";
import { isEnded, type TaskState, taskStates } from "./state.ts";

/** Number of tasks in each open state, in all processes. */
export type TaskCounts = ReadonlyMap<TaskState, number>;

/** The database, and the reports of {@link createTaskJobs}. */
export interface TaskJobsOptions {
  readonly pool: Pool;
  /**
   * Called with each count, and with the age in seconds of the oldest queued task (0: none). Does
   * nothing by default.
   */
  readonly onCount?: (counts: TaskCounts, queueAgeSeconds: number) => void;
  /** Logs a warning for operators, without secrets. Does nothing by default. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The jobs of a process. Every process may run them. */
export interface TaskJobs extends PeriodicJobs {
  /** Deletes expired tasks now. Returns their number. */
  expire(): Promise<number>;
  /** Counts now. */
  count(): Promise<TaskCounts>;
}

/** Interval at which old tasks are deleted. */
const expireEveryMs = 10 * 60 * 1_000;

/** Interval at which open tasks are counted. */
const countEveryMs = 15_000;

/** Number of tasks that one statement deletes: a long statement would delay others. */
const batch = 1_000;

/**
 * An id begins with its creation time, by the clock of a process that may be wrong. Also, a task
 * that ran for that long is not old. Events are deleted after their tasks.
 */
const expireSql = `
  delete from task where id in (
    select id from task where id < $1 and finish_time < now() - $2 * interval '1 ms'
    order by id limit ${batch} for update skip locked)
  returning id`;

const countSql = `select state, count(*)::int as count,
    extract(epoch from now() - min(create_time))::float as age from task
  where state in ('queued', 'submitting', 'submit_unknown', 'running', 'finalizing') group by state`;

/** Creates the jobs; {@link PeriodicJobs.start} begins. */
export function createTaskJobs(options: TaskJobsOptions): TaskJobs {
  const { pool, onCount = () => {}, warn = () => {} } = options;
  const count = async (): Promise<TaskCounts> => {
    const { rows } = await pool.query<{ state: TaskState; count: number; age: number }>(countSql);
    const found = new Map(rows.map((row) => [row.state, row.count]));
    const open = taskStates.filter((state) => !isEnded(state));
    const counts = new Map(open.map((state) => [state, found.get(state) ?? 0]));
    onCount(counts, rows.find(({ state }) => state === "queued")?.age ?? 0);
    return counts;
  };
  const expire = (): Promise<number> => deleteOldTasks(pool);
  const failed = (what: string) => (error: unknown) =>
    warn(`${what} failed; trying again`, { err: error });
  const jobs = periodic([
    { run: count, everyMs: countEveryMs, onError: failed("counting tasks") },
    { run: expire, everyMs: expireEveryMs, onError: failed("deleting old tasks") },
  ]);
  return { ...jobs, count, expire };
}

async function deleteOldTasks(pool: Pool): Promise<number> {
  const before = firstId(new Date(Number(await databaseTime(pool)) - taskKeptMs));
  for (let deleted = 0; ; ) {
    const { rows } = await pool.query<{ id: string }>(expireSql, [before, taskKeptMs]);
    const ids = rows.map(({ id }) => id);
    if (ids.length > 0) await pool.query("delete from task_event where task_id = any($1)", [ids]);
    deleted += ids.length;
    if (ids.length < batch) return deleted;
  }
}
