/** Handles broken connections, which the driver's pool leaves to its users. */
import type { Pool, PoolClient } from "pg";

/** Maximum time a user may take to release a broken connection. */
const releaseMs = 1_000;

/**
 * Prevents damage by broken connections.
 *
 * - The pool emits an `error` event for an idle connection that breaks. Without a listener it would
 *   end the process.
 * - The ORM never releases a transaction's connection if the rollback fails, as it does on a broken
 *   connection. Each outage lost one of its few connections, and closing waited for it
 *   indefinitely.
 */
export function guardPool(pool: Pool): void {
  pool.on("error", () => {});
  pool.on("connect", (client) => {
    client.once("end", () => setTimeout(() => releaseBroken(client), releaseMs).unref());
  });
}

function releaseBroken(client: PoolClient): void {
  try {
    client.release(true);
  } catch {
    // Its user has released it.
  }
}
