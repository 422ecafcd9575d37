/**
 * Reports changed keys and accounts within a bounded time, or that changes may have been missed.
 *
 * It uses two mechanisms on a separate connection. Notifications (LISTEN) arrive within
 * milliseconds. A poll of the changes of the last 10 s is the heartbeat that proves the connection
 * alive, and replaces notifications that do not arrive (connection poolers, disabled triggers). The
 * poll has no cursor: a cursor could pass a row whose transaction was slow and committed behind it.
 * Instead each poll reads the whole window again, and repetition is harmless. Transactions longer
 * than the window rely on the notification, which is sent at commit.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import { type DatabaseAddress, toServer } from "../db/pool/server.ts";

/** Pause after a heartbeat. */
const heartbeatMs = 300;

/**
 * Maximum age of the last heartbeat. It is longer than the pause between heartbeats plus the usual
 * delays of a busy process. It is shorter than the second within which every process refuses a
 * disabled key (R-AUTH-3).
 */
const proofMsMax = 800;

/** Timeout of a connection attempt or heartbeat. */
const answerTimeoutMs = 2_000;

/** Pause before the next connection attempt. */
const reconnectMs = 200;

/** Timeout for closing the connection. */
const endTimeoutMs = 500;

/** More changes than this in one window count as a change of everything. */
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

/** Options of a {@link ChangeFeed}. */
export interface ChangeFeedOptions {
  /** Database URL. Contains a password: never log it. */
  readonly url: DatabaseAddress;
  /**
   * Called with the id of a key or account that was created, changed or deleted. The kind of the id
   * is not reported.
   */
  readonly onChange: (id: string) => void;
  /** Called if changes may have been missed, so that anything may have changed. */
  readonly onGap: () => void;
  /** Logs a lost connection once, and again only after it was restored. */
  readonly warn: (message: string, fields: object) => void;
  /** A monotonic clock in milliseconds. `performance.now()` by default. */
  readonly clock?: () => number;
}

/** Follows the changes of keys and accounts. */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #clock: () => number;
  readonly #closed = new AbortController();
  readonly #firstTry = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  /** All changes up to this time are known. */
  #provenMs = Number.NEGATIVE_INFINITY;
  /** The rows of the last poll by id, so that repeated rows are not reported again. */
  #seen: ReadonlyMap<string, string> = new Map();
  #isLossTold = false;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  /**
   * Starts, and reconnects until closed. Resolves when the feed is current or the first attempt has
   * failed.
   */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return this.#firstTry.promise;
  }

  /**
   * Whether all changes older than 0.8 s are known. Compared by clock rather than by timer: the
   * clock is right immediately after a pause of the process.
   */
  isCurrent(nowMs: number): boolean {
    return nowMs - this.#provenMs <= proofMsMax;
  }

  /** Closes the connection. */
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

  /**
   * Runs one connection from start to end. @throws the reason it ended, except after {@link close}
   */
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
    const client = toServer(this.#options.url).createClient({
      connectLimitMs: answerTimeoutMs,
      query_timeout: answerTimeoutMs,
      application_name: "uas-key-changes",
    });
    // At once, without waiting for the next heartbeat.
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

  /** The proof is as old as the query, because the answer shows no changes after the query. */
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
    const message =
      "notifications of changed API keys are lost: keys are not cached until they work again";
    this.#options.warn(message, { err: error });
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}

/** A peer that vanished never confirms the close. */
async function end(client: Client): Promise<void> {
  const timeout = new AbortController();
  await Promise.race([client.end().catch(() => {}), pause(endTimeoutMs, timeout.signal)]);
  timeout.abort();
}
