/** The background job: objects and jobs that vendors no longer keep are deleted. */
import type { Pool } from "pg";
import { nativeObjectTtlMs, taskKeptMs } from "../core/limits.ts";
import { periodic, type PeriodicJobs } from "../core/periodic.ts";

/** The jobs of a process. Every process may run them. */
export interface NativeJobs extends PeriodicJobs {
  /** Deletes expired objects and jobs now. Returns their number. */
  expire(): Promise<number>;
}

/** Interval of the job. */
const everyMs = 60 * 60 * 1_000;

/** Number of rows that one statement deletes: a long statement would delay others. */
const batch = 1_000;

const statements: readonly (readonly [text: string, ttlMs: number])[] = [
  [
    `delete from native_object where ctid in (select ctid from native_object
      where create_time < now() - $1 * interval '1 ms' and expire_time is null
      limit ${batch} for update skip locked)`,
    nativeObjectTtlMs,
  ],
  [
    `delete from native_object where ctid in (select ctid from native_object
      where expire_time < now() - $1 * interval '1 ms' limit ${batch} for update skip locked)`,
    0,
  ],
  // A day longer than their tasks, which are deleted by their end.
  [
    `delete from native_job where task_id in (select job.task_id from native_job job
      left join task on task.id = job.task_id where task.id is null
      and job.refresh_time < now() - $1 * interval '1 ms' limit ${batch})`,
    taskKeptMs,
  ],
  [
    `delete from native_upload where ctid in (select ctid from native_upload
      where day < (now() at time zone 'utc')::date - 1 and $1 >= 0 limit ${batch})`,
    0,
  ],
];

/**
 * Creates the job; {@link PeriodicJobs.start} starts it.
 *
 * @param warn logs failures, without secrets
 */
export function createNativeJobs(
  pool: Pool,
  warn: (message: string, fields: object) => void,
): NativeJobs {
  const expire = async (): Promise<number> => {
    let deleted = 0;
    for (const [text, ttlMs] of statements) {
      for (let count = batch; count === batch; deleted += count) {
        count = (await pool.query(text, [ttlMs])).rowCount ?? 0;
      }
    }
    return deleted;
  };
  const onError = (error: unknown): void =>
    warn("deleting old vendor objects failed; trying again", { err: error });
  return { ...periodic([{ run: expire, everyMs, onError }]), expire };
}
