/** Opens connections that many share. */
import { Pool, type PoolClient } from "pg";
import { DatabaseClient, type DatabaseClientConfig } from "./client.ts";
import { type DatabaseAddress, type DatabaseServer, toServer } from "./server.ts";
import { lockWaitMs, probeServer, sharePool, type SharePoolOptions } from "./share-pool.ts";

/** Who waits for the statements of a pool: clients, or nobody. */
export type PoolUsers = SharePoolOptions["for"];

/** What {@link openPool} needs. */
export interface OpenPoolOptions extends Pick<SharePoolOptions, "for"> {
  /** How many connections it may open. */
  readonly max: number;
  /** Whether statements of one connection may go out together. Default false. */
  readonly isPipelined?: boolean;
}

/** How long opening a connection may take, in milliseconds. Callers learn soon that the database is lost; jobs have time. */
export const connectLimitMs = { callers: 900, jobs: 2_000 } as const;

/**
 * How long the server lets a statement wait for a lock, and run at all, in milliseconds. A caller whose rows are locked is
 * told so within a second, and its connection is free for others. Jobs repeat what failed; the longest of their statements
 * read a whole table.
 */
const statementLimits = {
  callers: { lockMs: lockWaitMs, statementMs: 10_000 },
  jobs: { lockMs: 5_000, statementMs: 600_000 },
} as const;

/** How much longer a connection waits for an answer, in milliseconds: one whose server does not even end the statement is
 * closed. A server that answers nobody is found sooner by {@link sharePool}. */
const graceMs = 5_000;

/**
 * The settings of a connection that bound its statements. The limits are set when it opens, and cost its statements
 * nothing. Not as parameters of the start: PgBouncer and other poolers refuse a connection with those.
 */
export function boundStatements(
  users: PoolUsers,
): Pick<DatabaseClientConfig, "sessionSettings" | "query_timeout"> {
  const { lockMs, statementMs } = statementLimits[users];
  return {
    sessionSettings: `set lock_timeout = ${lockMs}; set statement_timeout = ${statementMs}`,
    query_timeout: statementMs + graceMs,
  };
}

/** Opens them. */
export function openPool(address: DatabaseAddress, options: OpenPoolOptions): Pool {
  const server = toServer(address);
  const config = {
    Client: DatabaseClient,
    connectionString: server.url,
    max: options.max,
    ...boundStatements(options.for),
    keepAlive: true,
    // Unknown to the driver's types.
    connectLimitMs: connectLimitMs[options.for],
    ...(options.isPipelined && { pipeline: true }),
  };
  const pool = new Pool(config);
  preparePool(pool, server, options.for);
  return pool;
}

/** Makes a pool that somebody else has opened into one of these. */
export function preparePool(pool: Pool, server: DatabaseServer, users: PoolUsers): void {
  guardPool(pool);
  sharePool(pool, { for: users, probe: probeServer(server) });
}

// What the driver's pool leaves to its users when connections break.

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
