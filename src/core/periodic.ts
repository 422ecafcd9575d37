/**
 * Background jobs of a process: each runs repeatedly, never twice at once, until all are stopped.
 */
import { singleFlight } from "./async.ts";

/** A job and its schedule. */
interface PeriodicJob {
  /** Does the work once. */
  readonly run: () => Promise<unknown>;
  /** Interval between runs. A run that takes longer skips the next one. */
  readonly everyMs: number;
  /** Delay before the first run. Default 0: at once, in the background. */
  readonly firstMs?: number;
  /** Called with each failure; the next run follows at its regular time. */
  readonly onError: (error: unknown) => void;
}

/** Jobs that can be started and stopped together. */
export interface PeriodicJobs {
  /** Starts the timers. A second call does nothing. The timers do not keep the process alive. */
  start(): void;
  /** Stops the timers, and waits for the runs in progress. */
  stop(): Promise<void>;
}

/** Creates the jobs of a process; {@link PeriodicJobs.start} starts them. */
export function periodic(jobs: readonly PeriodicJob[]): PeriodicJobs {
  const runs = jobs.map((job) => ({ ...job, run: singleFlight(job.run, job.onError) }));
  const timers: NodeJS.Timeout[] = [];
  return {
    start() {
      if (timers.length > 0) return;
      for (const { run, everyMs, firstMs = 0 } of runs) {
        if (firstMs === 0) void run();
        else if (firstMs !== everyMs) timers.push(setTimeout(() => void run(), firstMs).unref());
        timers.push(setInterval(() => void run(), everyMs).unref());
      }
    },
    async stop() {
      for (const timer of timers.splice(0)) clearTimeout(timer);
      await Promise.all(runs.map(({ run }) => run.ended()));
    },
  };
}
