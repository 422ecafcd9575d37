/** Work in a transaction of its own: through the ORM, or by prepared SQL. */
import type { EntityManager, MikroORM } from "@mikro-orm/postgresql";
import type { Pool, PoolClient } from "pg";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { GatewayError } from "../../core/errors.ts";

/**
 * Does work in a transaction; what it throws takes it back.
 *
 * @param database the ORM for ordinary data: the work gets an entity manager of its own, whose changes are flushed at the
 * end. The plain pool for prepared SQL: the work gets a connection.
 * @throws GatewayError SERVICE_UNAVAILABLE where the database cannot be reached; what the work throws, as it is
 */
export function transact<Result>(
  database: MikroORM,
  work: (em: EntityManager) => Promise<Result>,
): Promise<Result>;
export function transact<Result>(
  database: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result>;
export function transact<Result>(
  database: MikroORM | Pool,
  work: (transaction: never) => Promise<Result>,
): Promise<Result> {
  // The overloads pair the database with what the work gets.
  if ("em" in database)
    return transactThrough(database, work as (em: EntityManager) => Promise<Result>);
  return transactOn(database, work as (client: PoolClient) => Promise<Result>);
}

function transactThrough<Result>(
  orm: MikroORM,
  work: (em: EntityManager) => Promise<Result>,
): Promise<Result> {
  return mapDatabaseLoss(orm.em.fork().transactional(work));
}

async function transactOn<Result>(
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

/** A connection that is inside a transaction of somebody else. */
export interface Transaction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: unknown[] }>;
}
