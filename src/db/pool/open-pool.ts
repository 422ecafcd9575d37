/** Opens pools of connections with time limits for their statements. */
import { Pool } from "pg";
import { DatabaseClient, type DatabaseClientConfig } from "./client.ts";
import { makeFair } from "./fair-pool.ts";
import { guardPool } from "./guard-pool.ts";
import { type DatabaseAddress, type DatabaseServer, toServer } from "./server.ts";
import { watchForSilence } from "./silent-server.ts";

/**
 * The users of a pool.
 * - `callers`: clients wait for the statements. Accounts share the connections fairly.
 * - `jobs`: no client waits. All requests wait in one queue, without a time limit.
 */
export type PoolUsers = "callers" | "jobs";

/** Options of {@link openPool}. */
export interface OpenPoolOptions {
  readonly for: PoolUsers;
  /** The most connections it opens. */
  readonly max: number;
  /** Whether statements of one connection may be sent together. Default false. */
  readonly isPipelined?: boolean;
}

/** Time limits of a connection and its statements. */
interface Limits {
  /** For opening the connection. */
  readonly connectMs: number;
  /** For a lock that a statement waits for. */
  readonly lockMs: number;
  /** For a statement. */
  readonly statementMs: number;
  /** For the answer of a server that seems to be silent. */
  readonly silenceMs: number;
}

/**
 * Callers get 503 within a second if the database is unreachable or the rows are locked (R-MON-7).
 * Jobs have time, and repeat failed work; the longest of their statements read a whole table.
 */
const limits: Readonly<Record<PoolUsers, Limits>> = {
  callers: { connectMs: 900, lockMs: 900, statementMs: 10_000, silenceMs: 600 },
  jobs: { connectMs: 2_000, lockMs: 5_000, statementMs: 600_000, silenceMs: 5_000 },
};

/** Additional time that a connection waits for an answer: the server ends the statement first. */
const graceMs = 5_000;

/**
 * The settings of a pool's connections. The server ends statements that take too long. It also
 * drops a gateway that vanished from the network, with its locks.
 */
export function connectionSettings(server: DatabaseServer, users: PoolUsers): DatabaseClientConfig {
  const { connectMs, lockMs, statementMs } = limits[users];
  return {
    connectionString: server.url,
    connectLimitMs: connectMs,
    query_timeout: statementMs + graceMs,
    sessionSettings: `set lock_timeout = ${lockMs}; set statement_timeout = ${statementMs};
      set tcp_keepalives_idle = 10; set tcp_user_timeout = 20000`,
  };
}

/** Opens a pool. */
export function openPool(address: DatabaseAddress, options: OpenPoolOptions): Pool {
  const server = toServer(address);
  const pool = new Pool({
    Client: DatabaseClient,
    max: options.max,
    ...connectionSettings(server, options.for),
    ...(options.isPipelined && { pipeline: true }),
  });
  preparePool(pool, server, options.for);
  return pool;
}

/** Prepares a pool that the ORM has created. */
export function preparePool(pool: Pool, server: DatabaseServer, users: PoolUsers): void {
  guardPool(pool);
  const fair = users === "callers" ? makeFair(pool) : undefined;
  const ask = (): Promise<void> => server.ask(limits[users].silenceMs);
  watchForSilence(pool, { ask, onSilent: (error) => fair?.rejectWaiters(error) });
}
