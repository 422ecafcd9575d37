/** Forgets what vendors have forgotten long ago. */
import type { Pool } from "pg";
import { nativeObjectTtlMs } from "../config/limits.ts";
import { taskKeptMs } from "../config/task-limits.ts";
import { singly } from "../singly.ts";

/** The jobs of a process. Every one may run them. */
export interface NativeExpiry {
  start(): void;
  /** Ends; what is under way is waited for. */
  stop(): Promise<void>;
  /** Forgets what is too old, now. Returns how many objects and jobs that were. */
  expire(): Promise<number>;
}

/** How often, in milliseconds. */
const everyMs = 60 * 60 * 1_000;

/** How many go in one statement: a long one would hold up others. */
const batch = 1_000;

const statements: readonly (readonly [text: string, ttlMs: number])[] = [
  [
    `delete from native_object where ctid in (select ctid from native_object
      where create_time < now() - $1 * interval '1 ms' limit ${batch} for update skip locked)`,
    nativeObjectTtlMs,
  ],
  // A day longer than the tasks that they are: those go by their end.
  [
    `delete from native_job where task_id in (select job.task_id from native_job job
      left join task on task.id = job.task_id where task.id is null
      and job.refresh_time < now() - $1 * interval '1 ms' limit ${batch})`,
    taskKeptMs,
  ],
];

/** Makes it; {@link NativeExpiry.start} begins. */
export function createNativeExpiry(
  pool: Pool,
  warn: (message: string, fields: object) => void,
): NativeExpiry {
  const expire = async (): Promise<number> => {
    let gone = 0;
    for (const [text, ttlMs] of statements) {
      for (let count = batch; count === batch; gone += count) {
        count = (await pool.query(text, [ttlMs])).rowCount ?? 0;
      }
    }
    return gone;
  };
  const expiring = singly(expire, (error) =>
    warn("forgetting old objects of vendors failed: tried again", { err: error }),
  );
  let timer: NodeJS.Timeout | undefined;
  return {
    expire,
    start() {
      timer = setInterval(() => void expiring(), everyMs).unref();
      void expiring();
    },
    async stop() {
      clearInterval(timer);
      await expiring.ended();
    },
  };
}
