/** Whether a gateway can serve calls. */
import type { Pool } from "pg";
import type { RunningCalls } from "./inference/running-calls.ts";

/** How long the answer of a readiness check counts, in milliseconds. */
const readyMs = 1_000;

/**
 * Ready: warmed up, not stopping, and the database answers. Never asks a vendor.
 *
 * @param isWarm whether the path of a call is compiled, or need not be
 */
export function createReadiness(
  pool: Pool,
  calls: RunningCalls,
  isWarm: () => boolean,
): () => Promise<boolean> {
  let checkedMs = Number.NEGATIVE_INFINITY;
  let answer = Promise.resolve(false);
  return async () => {
    if (!calls.isOpen || !isWarm()) return false;
    if (performance.now() - checkedMs > readyMs) {
      checkedMs = performance.now();
      const query = pool.query("select 1").then(
        () => true,
        () => false,
      );
      const late = new Promise<boolean>((resolve) => {
        setTimeout(resolve, readyMs, false).unref();
      });
      answer = Promise.race([query, late]);
    }
    return answer;
  };
}
