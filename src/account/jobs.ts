/** Deletes expired rows. SQL: sets of rows, by the database's clock. */
import type { Pool } from "pg";
import { sessionIdleMs, signInCleanupMs, signInTracesMs } from "../core/limits.ts";
import { singleFlight } from "../core/async.ts";

/** Background jobs. Every process may run them at the same time. */
export interface AccountJobs {
  /** Starts, with a first run in the background. */
  start(): void;
  /** Stops, after a running job. */
  stop(): Promise<void>;
  /** Deletes expired rows now. */
  sweep(): Promise<void>;
}

const traces = `now() - interval '${signInTracesMs} ms'`;

const statements = [
  `delete from console_session
    where expire_time < now() or seen_time < now() - interval '${sessionIdleMs} ms'`,
  `delete from sign_in_link where expire_time < now()`,
  `delete from one_time_code where create_time < ${traces}`,
  `delete from sign_in_failure where create_time < ${traces}`,
];

/** Options of {@link createAccountJobs}. */
interface AccountJobsOptions {
  readonly pool: Pool;
  readonly warn: (message: string, fields: object) => void;
  /** Further deletions to run at the same times. */
  readonly also: () => Promise<void>;
}

/** Creates the jobs; {@link AccountJobs.start} starts them. */
export function createAccountJobs({ pool, warn, also }: AccountJobsOptions): AccountJobs {
  let timer: NodeJS.Timeout | undefined;
  const sweep = async (): Promise<void> => {
    await also();
    for (const statement of statements) await pool.query(statement);
  };
  const job = singleFlight(sweep, (err) =>
    warn("deleting old sessions failed; trying again later", { err }),
  );
  return {
    sweep,
    start() {
      if (timer !== undefined) return;
      void job();
      timer = setInterval(() => void job(), signInCleanupMs).unref();
    },
    async stop() {
      clearInterval(timer);
      timer = undefined;
      await job.ended();
    },
  };
}
