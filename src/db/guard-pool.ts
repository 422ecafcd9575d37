/** What the driver's pool leaves to its users when connections break. */
import type { Pool, PoolClient } from "pg";

/** How long whoever has a connection may take to give it back after it broke, in milliseconds. */
const giveBackMs = 1_000;

/**
 * Keeps broken connections from doing harm.
 *
 * - One that breaks has an `error` event, which ends the process where nobody listens: idle ones are the
 *   pool's to hear of, those that somebody has are not.
 * - The ORM keeps a transaction's connection for ever where the rollback fails, which it does where the
 *   connection broke: each outage cost one of its few connections, and closing waited for it without end.
 */
export function guardPool(pool: Pool): void {
  pool.on("error", ignore);
  pool.on("connect", (client) => {
    client.on("error", ignore);
    client.once("end", () => setTimeout(() => reschedule(client), giveBackMs).unref());
  });
}

function reschedule(client: PoolClient): void {
  try {
    client.release(true);
  } catch {
    // It was given back already.
  }
}

function ignore(): void {}
