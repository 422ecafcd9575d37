/** Opens connections that many share. */
import { Pool } from "pg";
import { guardPool } from "./guard-pool.ts";
import { probeServer, sharePool, type SharePoolOptions } from "./share-pool.ts";

/** What {@link openPool} needs. */
export interface OpenPoolOptions extends Pick<SharePoolOptions, "for"> {
  /** How many connections it may open. */
  readonly max: number;
  /** Whether statements of one connection may go out together. Default false. */
  readonly isPipelined?: boolean;
}

/** How long a connection may take to come about, in milliseconds. A caller is told soon that the database is lost; a
 * job has time. */
export const connectTimeoutMs = { callers: 900, jobs: 2_000 } as const;

/** How long a statement may go unanswered, in milliseconds: longer than any that the gateway runs. A server that does not
 * answer at all is found sooner by {@link sharePool}. */
export const answerTimeoutMs = 600_000;

/** Opens them. @param url contains a password: never logged */
export function openPool(url: string, options: OpenPoolOptions): Pool {
  const config = {
    connectionString: url,
    max: options.max,
    connectionTimeoutMillis: connectTimeoutMs[options.for],
    query_timeout: answerTimeoutMs,
    keepAlive: true,
    // Unknown to the driver's types.
    ...(options.isPipelined && { pipeline: true }),
  };
  const pool = new Pool(config);
  preparePool(pool, url, options.for);
  return pool;
}

/** Makes a pool that somebody else has opened into one of these. */
export function preparePool(pool: Pool, url: string, users: OpenPoolOptions["for"]): void {
  guardPool(pool);
  sharePool(pool, { for: users, probe: probeServer(url) });
}
