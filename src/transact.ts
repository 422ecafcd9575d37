/** Work in a transaction of its own. */
import type { Pool, PoolClient } from "pg";
import { answering } from "./database-lost.ts";
import { GatewayError } from "./errors.ts";

/**
 * Does work in a transaction; what it throws takes it back.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE where the database cannot be reached; what the work throws, as it is
 */
export async function transact<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await answering(pool.connect());
  const run = async (): Promise<Result> => {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    return result;
  };
  try {
    const result = await answering(run());
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
