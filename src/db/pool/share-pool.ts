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
 * Locks are another reason not to be answered. The server ends a statement that waits too long for one. While such
 * statements take half of the connections, callers who wait for one are refused: they would be blocked in turn.
 *
 * A library's time limit also does not tell a server that is away from one that is busy: a caller that waited too long
 * behind others was told that the database could not be reached.
 */
import { DatabaseError, type Pool, type PoolClient } from "pg";
import { setAnswerTimeout } from "../../core/async.ts";
import { currentAccountContext, sharedContext } from "../../core/caller.ts";
import { accountQueueFull, databaseBusy, databaseUnavailable } from "../../core/database-lost.ts";
import type { DatabaseClient } from "./client.ts";
import type { DatabaseServer } from "./server.ts";

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
  /** The longest wait of a caller behind others, in milliseconds. Default 10 s. Behind statements that wait for locks it is
   * a quarter of a second. */
  readonly waitMs?: number;
}

/** How much of a pool one account may have: what is left goes on where all of its statements wait for a lock. */
const accountShare = 3 / 4;

/** The most of one account who wait for a connection of one pool. */
const waitingMax = 500;

/** See {@link SharePoolOptions}. */
const waitMsDefault = 10_000;

/** How long a caller's statement waits for a lock, in milliseconds. */
export const lockWaitMs = 900;

/** For how long after a statement waited for a lock in vain others are expected to, in milliseconds. */
const blockedMs = 2 * lockWaitMs;

/** What the server says of a statement that waited too long for a lock. */
export const lockNotAvailable = "55P03";

/** How often is looked at who waits, in milliseconds. */
const lookMs = 100;

/** After how long without a sign of life the server is asked for one, in milliseconds. */
const quietMs = 250;

/**
 * How long those who find all connections in use wait for one to come back before the first of them opens another, in
 * milliseconds; the next one may as long after that. Opening one takes the server 3 to 6 ms of CPU: without the wait, the
 * first questions of all jobs of a process that starts opened one each, 21 connections instead of 16.
 */
const openAfterMs = 10;

/** How long they wait at most, in milliseconds: a connection that is being opened may never be. */
const openAnywayMs = 30;

/** How long the sign may take, in milliseconds. Callers are told within a second that the database is away; jobs have
 * time, also on a busy server. */
const probeMs = { callers: 600, jobs: 5_000 } as const;

type Callback = (
  error: Error | undefined,
  client: PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void;

/** Lets `pool.connect`, and with it `pool.query`, wait in turns. To be called before the pool is used. */
export function sharePool(pool: Pool, options: SharePoolOptions): void {
  const sharing = new Sharing(pool, options);
  sharings.set(pool, sharing);
  pool.connect = ((callback?: Callback) => {
    const connecting = sharing.connect();
    if (callback === undefined) return connecting;
    return void tell(connecting, callback);
  }) as Pool["connect"];
  const end = pool.end.bind(pool);
  pool.end = async (callback?: () => void): Promise<void> => {
    // What was asked before the end is answered: the driver waits for connections that are being opened, from now on.
    sharing.hopeNoMore();
    await Promise.resolve();
    await end();
    callback?.();
  };
}

const sharings = new WeakMap<Pool, Sharing>();

/**
 * Limits how long work of several statements may wait for a server that answers nobody. A server that answers others is
 * busy: the work waits on, as long as each of its statements may.
 *
 * @param work told whether its caller was refused: what it has not sent by then must not be sent
 * @param late told of the result of work that ended after its caller was refused. Default: nothing
 * @throws GatewayError SERVICE_UNAVAILABLE after `limitMs` without an answer to anybody
 */
export async function whileAnswering<T>(
  pool: Pool,
  limitMs: number,
  work: (isRefused: () => boolean) => Promise<T>,
  late: (result: T) => void = () => {},
): Promise<T> {
  let isRefused = false;
  let heardMs = sharings.get(pool)?.heardMs;
  const isHeard = (): boolean => heardMs !== (heardMs = sharings.get(pool)?.heardMs);
  const { promise: refused, reject } = Promise.withResolvers<never>();
  const refuse = (): void => {
    isRefused = true;
    reject(databaseUnavailable());
  };
  const clear = setAnswerTimeout(refuse, limitMs, isHeard);
  const working = work(() => isRefused);
  try {
    return await Promise.race([working, refused]);
  } catch (error) {
    if (isRefused) void working.then(late, () => {});
    throw error;
  } finally {
    clear();
  }
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
export function probeServer(server: DatabaseServer): SharePoolOptions["probe"] {
  return async (connectLimitMs) => {
    const client = server.createClient({ connectLimitMs });
    client.on("error", () => {});
    await client.connect();
    void client.end().catch(() => {});
  };
}

/** Ends a connection at once, and the statements that wait for it with this error. The driver's own `end` waits for
 * pipelined statements to be answered. */
function breakConnection(client: PoolClient, error: Error): void {
  (client as unknown as DatabaseClient).connection.stream.destroy(error);
}

/** Calls `listener` with the SQLSTATE of each error that the server reports on a connection. */
function onServerError(client: PoolClient, listener: (code: string) => void): void {
  const { connection } = client as unknown as DatabaseClient;
  connection.on("errorMessage", ({ code = "" }: { readonly code?: string }) => listener(code));
}

class Sharing {
  readonly #pool: Pool;
  readonly #connect: () => Promise<PoolClient>;
  readonly #isForCallers: boolean;
  readonly #probe: SharePoolOptions["probe"];
  readonly #waitMs: number;
  readonly #turns: Turns;
  /** The connections that somebody has, since when, and for which account. */
  readonly #used = new Map<PoolClient, { readonly lane: string; readonly sinceMs: number }>();
  /** Those who have a place, and would rather have a connection that comes back than open one. */
  readonly #hopeful: Pick<Waiter, "begin" | "sinceMs">[] = [];
  /** Runs while somebody hopes. */
  #growth: NodeJS.Timeout | undefined;
  /** When the server answered last; while nobody uses the pool it is not known. */
  #heardMs = 0;
  /** When a statement last waited for a lock in vain. */
  #lockedMs = Number.NEGATIVE_INFINITY;
  #isProbing = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: Pool, { for: users, probe, waitMs = waitMsDefault }: SharePoolOptions) {
    const { max: places } = pool.options;
    this.#pool = pool;
    this.#connect = pool.connect.bind(pool);
    this.#isForCallers = users === "callers";
    this.#probe = probe;
    this.#waitMs = users === "callers" ? waitMs : Number.POSITIVE_INFINITY;
    const ofAccount = Math.ceil(places * accountShare);
    this.#turns = new Turns({
      places,
      share: (lane) => (lane === sharedContext ? places : ofAccount),
    });
    pool.on("connect", (client) =>
      onServerError(client, (code) => {
        if (code !== lockNotAvailable) return;
        this.#lockedMs = performance.now();
        // Before the connection comes back: the next one would be blocked on it.
        this.#refuseLate();
      }),
    );
    // It is told before the connection is free.
    pool.on("release", (error: Error | undefined, client) => {
      const lane = this.#used.get(client)?.lane;
      this.#used.delete(client);
      queueMicrotask(() => this.#hopeful.shift()?.begin());
      // After those who have a place.
      if (lane !== undefined) queueMicrotask(() => this.#leave(lane, !error));
    });
  }

  /** @throws GatewayError where too many wait, or the wait is too long; the driver's where there is no server */
  async connect(): Promise<PoolClient> {
    const lane = this.#isForCallers ? currentAccountContext() : sharedContext;
    if (!this.#turns.take(lane)) await this.#wait(lane);
    try {
      const client = await this.#connectSoon();
      this.#used.set(client, { lane, sinceMs: performance.now() });
      this.#watch();
      return client;
    } catch (error) {
      this.#leave(lane, false);
      throw error;
    }
  }

  get heardMs(): number {
    return this.#heardMs;
  }

  /** A connection of the driver's pool: one that is free or comes back soon, else a new one. */
  async #connectSoon(): Promise<PoolClient> {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    if (totalCount > 0 && idleCount <= waitingCount + this.#hopeful.length) {
      await new Promise<void>((begin) => {
        this.#hopeful.push({ begin, sinceMs: performance.now() });
        this.#growLater();
      });
    }
    return await this.#connect();
  }

  /** Lets all open a connection who hope for one that comes back. */
  hopeNoMore(): void {
    for (const { begin } of this.#hopeful.splice(0)) begin();
  }

  #growLater(): void {
    if (this.#hopeful.length === 0 || this.#growth !== undefined) return;
    this.#growth = setTimeout(() => this.#grow(), openAfterMs);
  }

  /** Lets the first one open a connection where none is being opened, and all who have waited too long for that. */
  #grow(): void {
    this.#growth = undefined;
    const { totalCount, idleCount } = this.#pool;
    const isOpening = totalCount > idleCount + this.#used.size;
    if (!isOpening) this.#hopeful.shift()?.begin();
    const latestMs = performance.now() - openAnywayMs;
    while ((this.#hopeful[0]?.sinceMs ?? Infinity) < latestMs) this.#hopeful.shift()?.begin();
    this.#growLater();
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
    this.#refuseLate();
    const nowMs = performance.now();
    const isQuiet = nowMs - Math.max(this.#heardMs, this.#oldestMs()) > quietMs;
    if (isQuiet && !this.#isProbing) void this.#listen();
  }

  #refuseLate(): void {
    const latestMs = performance.now() - (this.#isBlocked() ? quietMs : this.#waitMs);
    const isLate = ({ sinceMs }: Waiter): boolean => sinceMs < latestMs;
    this.#turns.refuse((waiter) => (isLate(waiter) ? databaseBusy() : undefined));
  }

  /** Whether half of the places are taken by statements that seem to wait for locks. */
  #isBlocked(): boolean {
    const nowMs = performance.now();
    if (!this.#isForCallers || nowMs - this.#lockedMs > blockedMs) return false;
    const isSlow = ({ sinceMs }: { readonly sinceMs: number }): boolean =>
      nowMs - sinceMs > quietMs;
    return 2 * [...this.#used.values()].filter(isSlow).length >= this.#pool.options.max;
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
    try {
      await this.#probe(this.#isForCallers ? probeMs.callers : probeMs.jobs);
      this.#heardMs = performance.now();
    } catch (cause) {
      // A refusal is a sign of life: the server may have too many connections.
      if (cause instanceof DatabaseError) this.#heardMs = performance.now();
      // It may have answered somebody else meanwhile.
      if (this.#heardMs >= askedMs) return;
      const lost = new Error("timeout: no connection is free, and the database does not answer", {
        cause,
      });
      this.#turns.refuse(() => lost);
      for (const [client, { sinceMs }] of this.#used) {
        if (sinceMs <= askedMs) breakConnection(client, lost);
      }
    } finally {
      this.#isProbing = false;
    }
  }
}

// Who uses one of a few places, and who waits for one: each lane in its order, the lanes in turns. Pure.

/** What {@link Turns} needs. */
interface TurnsOptions {
  /** How many places there are. */
  readonly places: number;
  /** The most places that a lane may have at once. */
  readonly share: (lane: string) => number;
}

/** Somebody who waits. */
interface Waiter {
  readonly lane: string;
  /** When it began, in milliseconds by the caller's clock. */
  readonly sinceMs: number;
  /** It has a place now. */
  begin(): void;
  /** It gets none. */
  refuse(error: Error): void;
}

/** The places, and the lines before them. */
export class Turns {
  readonly #options: TurnsOptions;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();
  /** In the order of their turns. No line is empty. */
  readonly #lines = new Map<string, Waiter[]>();

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** How many of a lane wait. */
  waitingIn(lane: string): number {
    return this.#lines.get(lane)?.length ?? 0;
  }

  /** Whether nobody waits. */
  get isIdle(): boolean {
    return this.#lines.size === 0;
  }

  /** Takes a place, if the lane may have one now. Where others wait, they may not. */
  take(lane: string): boolean {
    if (!this.#mayTake(lane)) return false;
    this.#taken += 1;
    this.#takenBy.set(lane, this.#countOf(lane) + 1);
    return true;
  }

  /** Gets in line, after {@link take} has said no. */
  wait(waiter: Waiter): void {
    const line = this.#lines.get(waiter.lane);
    if (line === undefined) this.#lines.set(waiter.lane, [waiter]);
    else line.push(waiter);
  }

  /** Gives a place back: the next one begins. */
  leave(lane: string): void {
    const left = this.#countOf(lane) - 1;
    this.#taken -= 1;
    if (left === 0) this.#takenBy.delete(lane);
    else this.#takenBy.set(lane, left);
    for (const [next, line] of this.#lines) {
      if (!this.take(next)) continue;
      const waiter = line.shift();
      // Its next one comes after all other lanes.
      this.#lines.delete(next);
      if (line.length > 0) this.#lines.set(next, line);
      waiter?.begin();
      return;
    }
  }

  /** Refuses those for whom there is an error. */
  refuse(errorFor: (waiter: Waiter) => Error | undefined): void {
    for (const [lane, line] of this.#lines) {
      const refused = line.map((waiter) => ({ waiter, error: errorFor(waiter) }));
      const left = refused.filter(({ error }) => error === undefined);
      if (left.length === 0) this.#lines.delete(lane);
      else line.splice(0, line.length, ...left.map(({ waiter }) => waiter));
      for (const { waiter, error } of refused) if (error !== undefined) waiter.refuse(error);
    }
  }

  #mayTake(lane: string): boolean {
    const { places, share } = this.#options;
    return this.#taken < places && this.#countOf(lane) < share(lane);
  }

  #countOf(lane: string): number {
    return this.#takenBy.get(lane) ?? 0;
  }
}
