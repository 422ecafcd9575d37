/**
 * Hears what other sessions of the database tell on a channel, on a connection of its own that comes back by
 * itself. Nothing here waits for ever: a connection that breaks in its first moments answers neither a query
 * nor a farewell.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import { type DatabaseAddress, toServers } from "./servers.ts";

/** How long before another connection is tried, in milliseconds. */
const reconnectMs = 1_000;

/** How long a connection, and the answer to a statement, may take, in milliseconds. */
const answerTimeoutMs = 2_000;

/** How long a farewell may take, in milliseconds. */
const endTimeoutMs = 500;

/** What a {@link Listener} needs. */
export interface ListenerOptions {
  /** The database. Contains a password: never logged. */
  readonly url: DatabaseAddress;
  /** The channel: a plain name, as it stands in the statement. */
  readonly channel: string;
  /** What the connection is called in the server's list. */
  readonly applicationName: string;
  /** Gets each notice. */
  readonly onNotice: (payload: string) => void;
  /** Called when it begins to listen, and after each loss: notices may have been missed. Default: nobody. */
  readonly onGap?: () => void;
}

/** Listens from {@link start} to {@link close}. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #closed = new AbortController();
  readonly #firstTry = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  /** Ends the connection that is there now. */
  #endNow: () => void = () => {};

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** Begins. Resolves when it listens, or the first try has failed. */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return this.#firstTry.promise;
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    this.#closed.abort();
    this.#endNow();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      await this.#listen().catch(() => {});
      this.#firstTry.resolve();
      await delay(reconnectMs, undefined, { signal }).catch(() => {});
      this.#options.onGap?.();
    }
  }

  /** One connection. Resolves or rejects when it has ended. */
  async #listen(): Promise<void> {
    const { url, channel, applicationName, onNotice, onGap } = this.#options;
    const client = toServers(url).createClient({
      connectLimitMs: answerTimeoutMs,
      query_timeout: answerTimeoutMs,
      keepAlive: true,
      application_name: applicationName,
    });
    const ended = Promise.withResolvers<void>();
    client.on("error", () => ended.resolve());
    client.on("end", () => ended.resolve());
    this.#endNow = ended.resolve;
    client.on("notification", ({ payload = "" }) => onNotice(payload));
    try {
      await client.connect();
      await client.query(`listen ${channel}`);
      // What was told while nobody listened.
      onGap?.();
      this.#firstTry.resolve();
      if (!this.#closed.signal.aborted) await ended.promise;
    } finally {
      await end(client);
    }
  }
}

/** A client whose connection broke before it was open never ends by its own account. */
async function end(client: Client): Promise<void> {
  const late = new AbortController();
  const pause = delay(endTimeoutMs, undefined, { signal: late.signal }).catch(() => {});
  await Promise.race([client.end().catch(() => {}), pause]);
  late.abort();
}
