/** Kills workers and senders of webhooks at each of their points, again and again. */
import { run } from "../../tools/run.ts";

/** The tests that do it once for each point; the suite has them too. */
const files = ["test/task/crash.test.ts", "test/webhook/crash.test.ts"];

/**
 * Runs them `rounds` times, each time on a database of its own: no lost or doubled submit, task, charge or
 * webhook, whatever the order that chance makes.
 *
 * @returns how many rounds failed; what failed has been shown
 */
export async function runTaskRounds(rounds: number): Promise<number> {
  let failed = 0;
  for (let round = 0; round < rounds; round++) {
    if ((await run("vitest", ["run", "--reporter=dot", ...files])) !== 0) failed++;
  }
  return failed;
}
