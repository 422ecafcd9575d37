/** What the driver's pool leaves to its users when connections break. */
import type { Pool, PoolClient } from "pg";

/** How long a user may take to release a connection that broke, in milliseconds. */
const releaseMs = 1_000;

/**
 * Keeps broken connections from doing harm.
 *
 * - The pool has an `error` event for an idle connection that breaks. Without a listener it would end the process.
 * - The ORM never releases a transaction's connection if the rollback fails, as it does if the connection broke: each outage
 *   cost one of its few connections, and closing waited for it without end.
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
