/** Work in a transaction of its own. */
import type { EntityManager } from "@mikro-orm/postgresql";
import type { Pool, PoolClient } from "pg";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { GatewayError } from "../core/errors.ts";

/**
 * Does work in a transaction; what it throws takes it back.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE where the database cannot be reached; what the work throws, as it is
 */
export async function transact<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await mapDatabaseLoss(pool.connect());
  const run = async (): Promise<Result> => {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    return result;
  };
  try {
    const result = await mapDatabaseLoss(run());
    client.release();
    return result;
  } catch (error) {
    // Refusals are common and the connection is sound. After anything else nobody knows: thrown away, it takes its
    // transaction with it.
    const isSound = error instanceof GatewayError && (await takeBack(client));
    client.release(!isSound);
    throw error;
  }
}

async function takeBack(client: PoolClient): Promise<boolean> {
  return client.query("rollback").then(
    () => true,
    () => false,
  );
}

/* SQL inside a transaction of somebody else. */

/** A transaction that is open: an entity manager inside `transactional`, or a driver's connection. */
export type Transaction =
  | Pick<EntityManager, "execute" | "isInTransaction">
  | { query(text: string, values: unknown[]): Promise<{ rows: unknown[] }> };

/** Runs a statement with `$1`, `$2`, … in it. @throws the driver's error; the transaction is then aborted */
export async function execute<Row>(
  transaction: Transaction,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  if ("query" in transaction) return (await transaction.query(text, [...values])).rows as Row[];
  if (!transaction.isInTransaction()) throw new Error("a webhook needs an open transaction");
  const inOrder: unknown[] = [];
  const marked = text.replaceAll(/\$(\d+)/g, (_mark, number: string) => {
    inOrder.push(values[Number(number) - 1]);
    return "?";
  });
  return transaction.execute<Row[]>(marked, inOrder);
}
