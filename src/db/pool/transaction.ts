/** Work in a separate transaction: through the ORM, or by prepared SQL. */
import type { EntityManager, MikroORM } from "@mikro-orm/postgresql";
import type { Pool, PoolClient } from "pg";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { GatewayError } from "../../core/errors.ts";

/**
 * Does work in a transaction; an error of the work rolls it back.
 *
 * @param database the ORM for ordinary data: the work gets a new entity manager, whose changes are
 * flushed at the end. The plain pool for prepared SQL: the work gets a connection.
 * @throws GatewayError SERVICE_UNAVAILABLE if the database cannot be reached; errors of the work
 * unchanged
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
  // The overloads pair the database with the argument of the work.
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
    // Refusals are common and leave the connection intact. After any other error its state is
    // unknown: it is discarded, which ends its transaction too.
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

/** A connection inside a transaction of the caller. */
export interface Transaction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: unknown[] }>;
}
