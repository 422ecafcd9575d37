/** How long the questions of a console take over a call log of five million rows. */
import { Pool } from "pg";
import { fillLog, logQuestions } from "../test/support/log-rows.ts";

/** How long a question took. */
export interface LogBenchResult {
  readonly title: string;
  /** How many calls, bars or series the answer has. */
  readonly found: number;
  readonly p50Ms: number;
  readonly worstMs: number;
}

/** What was measured. */
export interface LogBench {
  readonly rows: number;
  readonly fillSeconds: number;
  readonly results: readonly LogBenchResult[];
}

/** How often each is asked, after one that warms up: odd, for the middle one. */
const tries = 15;

/** Fills an empty database, and asks. */
export async function benchLog(url: string, rows: number): Promise<LogBench> {
  const pool = new Pool({ connectionString: url, max: 2 });
  try {
    const startMs = performance.now();
    const log = await fillLog(pool, rows);
    const fillSeconds = (performance.now() - startMs) / 1_000;
    const results: LogBenchResult[] = [];
    for (const { title, ask } of logQuestions(pool, log)) {
      const { found } = await ask(0);
      const times: number[] = [];
      for (let attempt = 1; attempt <= tries; attempt++) {
        const askedMs = performance.now();
        await ask(attempt);
        times.push(performance.now() - askedMs);
      }
      const sorted = times.toSorted((a, b) => a - b);
      const [p50Ms = 0, worstMs = 0] = [sorted[Math.floor(tries / 2)], sorted.at(-1)];
      results.push({ title, found, p50Ms, worstMs });
    }
    return { rows, fillSeconds, results };
  } finally {
    await pool.end();
  }
}
