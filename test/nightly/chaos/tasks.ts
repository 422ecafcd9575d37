/** The tests that kill processes with something in their hands, again and again. */
import { run } from "../../../tools/run.ts";

/**
 * The tests of task workers and senders of webhooks: they kill one at each point. The suite has
 * them too.
 */
export const taskTests = [
  "test/unit/task/crash.test.ts",
  "test/unit/webhook/crash.test.ts",
] as const;

/**
 * The tests of several workers of one gateway: one is killed, all are replaced, and their
 * supervisor is killed.
 */
export const workerTests = ["test/behaviour/lifecycle/workers.test.ts"] as const;

/**
 * Runs test files `rounds` times, each time on a separate database: nothing may be lost or doubled
 * in any order.
 *
 * @returns the number of failed rounds; their failures have been printed
 */
export async function runTestRounds(files: readonly string[], rounds: number): Promise<number> {
  let failed = 0;
  for (let round = 0; round < rounds; round++) {
    if ((await run("vitest", ["run", "--reporter=dot", ...files])) !== 0) failed++;
  }
  return failed;
}
