/**
 * Shares the few connections of a pool fairly among accounts. Pools of libraries have one queue for all: an account that
 * keeps it full delays every other.
 *
 * Measured with 8 connections, one account that keeps 400 statements of 10 ms waiting, and another that runs
 * `select 1` every 10 ms. Its median and 99th percentile: 0.5 and 9 ms here, 540 and 600 ms with the pool of pg 8.23,
 * 550 and 630 ms with generic-pool 3.9. The price is the quarter of the connections that one account never gets: the
 * first account ran 540 statements a second instead of 710. Alone, a statement costs no more CPU than with pg's pool.
 *
 * A server that keeps connections open and does not answer would hold callers for as long as TCP takes to give up. So
 * while a statement is unanswered and nothing else was heard, the server is asked for a sign of life by a connection of
 * its own. Where there is none, all connections are closed, and the statements on them fail at once.
 *
 * A library's time limit also does not tell a server that is away from one that is busy: a caller that waited too long
 * behind others was told that the database could not be reached.
 */
import { Client, DatabaseError, type Pool, type PoolClient } from "pg";
import { databaseBusy, accountQueueFull } from "../core/database-lost.ts";
import { sharedContext, currentAccountContext } from "../core/account-context.ts";
import { Turns, type Waiter } from "./turns.ts";

/** What {@link sharePool} needs. */
export interface SharePoolOptions {
  /**
   * - `callers`: accounts take turns, and none has more than three quarters of the connections; of too many who wait
   *   the last ones are refused, and so is who has waited too long.
   * - `jobs`: all wait in one line, as long as it takes.
   */
  readonly for: "callers" | "jobs";
  /** Asks the server for a sign of life, within so many milliseconds. @throws where there is none */
  readonly probe: (timeoutMs: number) => Promise<void>;
  /** The longest wait of a caller behind others, in milliseconds. Default 10 s. */
  readonly waitMs?: number;
}

/** How much of a pool one account may have: what is left goes on where all of its statements wait for a lock. */
const accountShare = 3 / 4;

/** The most of one account who wait for a connection of one pool. */
const waitingMax = 500;

/** See {@link SharePoolOptions}. */
const waitMsDefault = 10_000;

/** How often is looked at who waits, in milliseconds. */
const lookMs = 100;

/** After how long without a sign of life the server is asked for one, in milliseconds. */
const quietMs = 250;

/** How long the sign may take, in milliseconds. Callers are told within a second that the database is away; jobs have
 * time, also on a busy server. */
const probeMs = { callers: 600, jobs: 5_000 } as const;

/** How late a probe may end, in milliseconds. One that ends later was kept waiting by this process itself: it says
 * nothing about the server. */
const probeLateMs = 200;

type Callback = (
  error: Error | undefined,
  client: PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void;

/** Lets `pool.connect`, and with it `pool.query`, wait in turns. To be called before the pool is used. */
export function sharePool(pool: Pool, options: SharePoolOptions): void {
  const sharing = new Sharing(pool, options);
  pool.connect = ((callback?: Callback) => {
    const connecting = sharing.connect();
    if (callback === undefined) return connecting;
    return void tell(connecting, callback);
  }) as Pool["connect"];
}

/** The driver's pool asks itself in this way. */
async function tell(connecting: Promise<PoolClient>, callback: Callback): Promise<void> {
  let client: PoolClient;
  try {
    client = await connecting;
  } catch (error) {
    callback(error as Error, undefined, () => {});
    return;
  }
  callback(undefined, client, client.release.bind(client));
}

/** Asks a server for a sign of life by a connection of its own. */
export function probeServer(connectionString: string): SharePoolOptions["probe"] {
  return async (connectionTimeoutMillis) => {
    const client = new Client({ connectionString, connectionTimeoutMillis });
    client.on("error", () => {});
    await client.connect();
    void client.end().catch(() => {});
  };
}

/** Closes a connection that somebody has. With a statement under way the socket is destroyed, and the statement fails at
 * once; the pool takes no such connection back. */
function closeNow(client: PoolClient): void {
  // The driver's type leaves out what its pool calls itself.
  void (client as PoolClient & { end(): Promise<void> }).end().catch(() => {});
}

class Sharing {
  readonly #connect: () => Promise<PoolClient>;
  readonly #isForCallers: boolean;
  readonly #probe: SharePoolOptions["probe"];
  readonly #waitMs: number;
  readonly #turns: Turns;
  /** The connections that somebody has, since when, and for which account. */
  readonly #used = new Map<PoolClient, { readonly lane: string; readonly sinceMs: number }>();
  #heardMs = 0;
  #isProbing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: Pool, { for: users, probe, waitMs = waitMsDefault }: SharePoolOptions) {
    const { max: places } = pool.options;
    this.#connect = pool.connect.bind(pool);
    this.#isForCallers = users === "callers";
    this.#probe = probe;
    this.#waitMs = users === "callers" ? waitMs : Number.POSITIVE_INFINITY;
    const ofAccount = Math.ceil(places * accountShare);
    this.#turns = new Turns({
      places,
      share: (lane) => (lane === sharedContext ? places : ofAccount),
    });
    // It is told before the connection is free.
    pool.on("release", (error: Error | undefined, client) => {
      const lane = this.#used.get(client)?.lane;
      this.#used.delete(client);
      if (lane !== undefined) queueMicrotask(() => this.#leave(lane, !error));
    });
  }

  /** @throws GatewayError where too many wait, or the wait is too long; the driver's where there is no server */
  async connect(): Promise<PoolClient> {
    const lane = this.#isForCallers ? currentAccountContext() : sharedContext;
    if (!this.#turns.take(lane)) await this.#wait(lane);
    try {
      const client = await this.#connect();
      this.#used.set(client, { lane, sinceMs: performance.now() });
      this.#watch();
      return client;
    } catch (error) {
      this.#leave(lane, false);
      throw error;
    }
  }

  #leave(lane: string, isHeard: boolean): void {
    if (isHeard) this.#heardMs = performance.now();
    this.#turns.leave(lane);
  }

  #wait(lane: string): Promise<void> {
    if (this.#isForCallers && this.#turns.waitingIn(lane) >= waitingMax) {
      throw lane === sharedContext ? databaseBusy() : accountQueueFull();
    }
    this.#watch();
    return new Promise((resolve, reject) => {
      this.#turns.wait({ lane, sinceMs: performance.now(), begin: resolve, refuse: reject });
    });
  }

  #watch(): void {
    if (this.#timer !== undefined) return;
    // How long nothing was heard while nobody waited says nothing.
    this.#heardMs = performance.now();
    this.#timer = setInterval(() => this.#look(), lookMs);
    this.#timer.unref();
  }

  #look(): void {
    if (this.#turns.isIdle && this.#used.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const nowMs = performance.now();
    const isLong = ({ sinceMs }: Waiter): boolean => nowMs - sinceMs > this.#waitMs;
    this.#turns.refuse((waiter) => (isLong(waiter) ? databaseBusy() : undefined));
    const isQuiet = nowMs - Math.max(this.#heardMs, this.#oldestMs()) > quietMs;
    if (isQuiet && !this.#isProbing) void this.#listen();
  }

  /** Since when the longest user has its connection, where nobody waits for one. */
  #oldestMs(): number {
    const [oldest] = this.#used.values();
    return this.#turns.isIdle && oldest !== undefined ? oldest.sinceMs : Number.NEGATIVE_INFINITY;
  }

  /** Finds out whether the server is there; if it is not, nobody waits any longer. */
  async #listen(): Promise<void> {
    this.#isProbing = true;
    const askedMs = performance.now();
    const limitMs = this.#isForCallers ? probeMs.callers : probeMs.jobs;
    try {
      await this.#probe(limitMs);
      this.#heardMs = performance.now();
    } catch (cause) {
      // A refusal is a sign of life: the server may have too many connections.
      if (cause instanceof DatabaseError) this.#heardMs = performance.now();
      if (performance.now() - askedMs > limitMs + probeLateMs) return;
      // It may have answered somebody else meanwhile.
      if (this.#heardMs >= askedMs) return;
      const lost = new Error("timeout: no connection is free, and the database does not answer", {
        cause,
      });
      this.#turns.refuse(() => lost);
      for (const [client, { sinceMs }] of this.#used) {
        if (sinceMs <= askedMs) closeNow(client);
      }
    } finally {
      this.#isProbing = false;
    }
  }
}
