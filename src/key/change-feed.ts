/**
 * Tells which keys and accounts have changed, within a bounded time, or else that it does not know.
 *
 * Two ways on one connection of its own. Notices (LISTEN) arrive in milliseconds. A poll of what changed in
 * the last 10 s is the heartbeat that proves the connection alive, and stands in where notices do not come
 * through (a connection pooler in between, triggers switched off). The poll has no cursor, and so not a
 * cursor's fault, to step over a row whose transaction took its time and committed behind the cursor: every
 * poll looks at the whole window again, and repeating is harmless. What takes longer than the window to
 * commit is left to the notice, which is sent at the commit.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";

/** How long to pause after a heartbeat, in milliseconds. */
const heartbeatMs = 300;

/**
 * How old the last proof may be, in milliseconds: a heartbeat and what a busy process may be late by, and
 * well under the second within which a disabled key is refused everywhere (R-AUTH-3).
 */
const proofMsMax = 800;

/** How long a connection attempt or a heartbeat may take before the connection is given up, in milliseconds. */
const answerTimeoutMs = 2_000;

/** The pause before another connection attempt, in milliseconds. */
const reconnectMs = 200;

/** How long a farewell may take, in milliseconds. */
const endTimeoutMs = 500;

/** More changes than this in one window are treated as a change of everything. */
const changesMax = 1_000;

/** now() and not clock_timestamp(): only a stable bound can use the index. */
const pollStatement = {
  name: "key_changes",
  text:
    "select id, change_time::text from api_key where change_time > now() - interval '10 s' union all " +
    "select id, change_time::text from account where change_time > now() - interval '10 s' " +
    `limit ${changesMax + 1}`,
};

interface ChangeRow {
  readonly id: string;
  readonly change_time: string;
}

/** What a {@link ChangeFeed} needs. */
export interface ChangeFeedOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  /** A key was created, changed or removed, or an account was changed: whose id it is, is not said. */
  readonly onChange: (id: string) => void;
  /** Anything may have changed: something may have been missed. */
  readonly onGap: () => void;
  /** Gets one line where the connection is lost, and again only after it was back. */
  readonly warn: (message: string, fields: object) => void;
  /** The time in milliseconds, never going back. Default: `performance.now()`. */
  readonly clock?: () => number;
}

/** Follows the changes of keys and of their accounts. */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #clock: () => number;
  readonly #closed = new AbortController();
  readonly #firstTry = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  /** Up to when every change is known. */
  #provenMs = Number.NEGATIVE_INFINITY;
  /** What the last poll saw, by id: what it sees again is no news. */
  #seen: ReadonlyMap<string, string> = new Map();
  #isLossTold = false;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  /**
   * Begins, and keeps on until closed, also through outages. Resolves when it follows or the first attempt
   * has failed.
   */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return this.#firstTry.promise;
  }

  /**
   * Whether every change is known that was made more than 0.8 s ago. Judged by the clock and not by a timer:
   * after a pause of the process the clock is right at once.
   */
  isCurrent(nowMs: number): boolean {
    return nowMs - this.#provenMs <= proofMsMax;
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#lose();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      try {
        await this.#follow();
      } catch (error) {
        this.#tellLoss(error);
      }
      this.#lose();
      this.#firstTry.resolve();
      await pause(reconnectMs, signal);
    }
  }

  /** One connection from its beginning to its end. @throws why it ended, unless by {@link close} */
  async #follow(): Promise<void> {
    const lost = new AbortController();
    const signal = AbortSignal.any([lost.signal, this.#closed.signal]);
    const client = this.#createClient(lost);
    try {
      await client.connect();
      await client.query("listen key_changed");
      this.#isLossTold = false;
      for (let isFirst = true; !signal.aborted; isFirst = false) {
        await this.#beat(client, isFirst);
        this.#firstTry.resolve();
        await pause(heartbeatMs, signal);
      }
      if (lost.signal.aborted) throw lost.signal.reason;
    } finally {
      this.#lose();
      await end(client);
    }
  }

  #createClient(lost: AbortController): Client {
    const client = new Client({
      connectionString: this.#options.url,
      connectionTimeoutMillis: answerTimeoutMs,
      query_timeout: answerTimeoutMs,
      keepAlive: true,
      application_name: "uas-key-changes",
    });
    // At once, not at the next heartbeat.
    const lose = (error?: Error): void => {
      this.#lose();
      lost.abort(error ?? new Error("the connection has ended"));
    };
    client.on("error", lose);
    client.on("end", () => lose());
    client.on("notification", ({ payload }) => {
      if (payload) this.#options.onChange(payload);
      else this.#options.onGap();
    });
    return client;
  }

  /** The proof is as old as the question, for the answer tells of no later time. */
  async #beat(client: Client, isFirst: boolean): Promise<void> {
    const startedMs = this.#clock();
    const { rows } = await client.query<ChangeRow>(pollStatement);
    const isLapsed = !this.isCurrent(this.#clock());
    const isFlood = rows.length > changesMax;
    const seen = new Map(rows.map((row) => [row.id, row.change_time]));
    if (isFirst || isLapsed || isFlood) this.#options.onGap();
    else {
      for (const [id, time] of seen) if (this.#seen.get(id) !== time) this.#options.onChange(id);
    }
    this.#seen = seen;
    this.#provenMs = startedMs;
  }

  #lose(): void {
    this.#provenMs = Number.NEGATIVE_INFINITY;
  }

  #tellLoss(error: unknown): void {
    if (this.#isLossTold || this.#closed.signal.aborted) return;
    this.#isLossTold = true;
    const reason = error instanceof Error ? error.message : String(error);
    const message = "changes of API keys cannot be followed: every key is looked up until they can";
    this.#options.warn(message, { reason });
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}

/** A peer that is gone without a word never answers a farewell. */
async function end(client: Client): Promise<void> {
  const timeout = new AbortController();
  await Promise.race([client.end().catch(() => {}), pause(endTimeoutMs, timeout.signal)]);
  timeout.abort();
}
