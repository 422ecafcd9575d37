/**
 * The one connection on which a process hears notifications (LISTEN), for all that listen in it. It comes back by itself.
 * With a connection for each channel, a process had six of them: managed databases allow few, and each costs the server
 * several megabytes and 6 ms to open.
 *
 * Nothing here waits for ever: a connection that breaks in its first moments answers neither a query nor a farewell.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Client, ClientConfig } from "pg";

/** How long before another connection is tried, in milliseconds. */
const reconnectMs = 1_000;

/** How long a connection, and the answer to a statement, may take, in milliseconds. */
const answerTimeoutMs = 2_000;

/** How long a farewell may take, in milliseconds. */
const endTimeoutMs = 500;

/** Somebody who listens on a channel. */
export interface ChannelListener {
  /** The channel: a plain name, as it stands in the statement. */
  readonly channel: string;
  /** Gets the payload of each notification. */
  onNotice(payload: string): void;
  /** It listens now, or lost the connection: notifications may have been missed. */
  onGap(): void;
  /** It listens now, or the first try has failed. Called again with each try. */
  onTried(): void;
}

/** Makes a connection, which may take so long to open, in milliseconds. */
type CreateClient = (config: ClientConfig & { readonly connectLimitMs: number }) => Client;

/** Opens the connection with the first listener, and ends it with the last one. */
export class ListeningConnection {
  readonly #createClient: CreateClient;
  readonly #listeners = new Set<ChannelListener>();
  #running: Promise<void> | undefined;
  /** Aborted with the last listener. */
  #unused = new AbortController();
  /** The open connection; `undefined`: there is none now. */
  #client: Client | undefined;
  /** Resolves when the last statement is answered: the driver takes one at a time. */
  #answered: Promise<unknown> = Promise.resolve();
  /** Ends the connection that is there now. */
  #endNow: () => void = () => {};

  constructor(createClient: CreateClient) {
    this.#createClient = createClient;
  }

  /** Adds a listener, which listens until {@link remove}; one that is there already stays as it is. */
  add(listener: ChannelListener): void {
    if (this.#listeners.has(listener)) return;
    this.#listeners.add(listener);
    if (this.#client !== undefined) void this.#listen(listener);
    this.#running ??= this.#run();
  }

  /** Removes a listener. Resolves when nothing is left of it, which is the connection where it was the last one. */
  async remove(listener: ChannelListener): Promise<void> {
    if (!this.#listeners.delete(listener)) return;
    const { channel } = listener;
    if (this.#listeners.size === 0) {
      this.#unused.abort();
      this.#client = undefined;
      this.#endNow();
      await this.#running;
    } else if (![...this.#listeners].some((other) => other.channel === channel)) {
      await this.#ask(`unlisten ${channel}`).catch(() => {});
    }
  }

  async #run(): Promise<void> {
    this.#unused = new AbortController();
    const { signal } = this.#unused;
    while (!signal.aborted) {
      await this.#connect(signal).catch(() => {});
      if (signal.aborted) break;
      for (const listener of this.#listeners) listener.onTried();
      await delay(reconnectMs, undefined, { signal }).catch(() => {});
      for (const listener of this.#listeners) listener.onGap();
    }
    // Somebody may have begun to listen while the connection ended.
    this.#running = this.#listeners.size > 0 ? this.#run() : undefined;
  }

  /** One connection. Resolves or rejects when it has ended. */
  async #connect(unused: AbortSignal): Promise<void> {
    const client = this.#createClient({
      connectLimitMs: answerTimeoutMs,
      query_timeout: answerTimeoutMs,
      application_name: "uas-notifications",
    });
    const ended = Promise.withResolvers<void>();
    this.#endNow = ended.resolve;
    client.on("error", () => ended.resolve());
    client.on("end", () => ended.resolve());
    client.on("notification", ({ channel, payload = "" }) => this.#tell(channel, payload));
    try {
      await client.connect();
      if (unused.aborted) return;
      this.#client = client;
      this.#answered = Promise.resolve();
      for (const listener of this.#listeners) void this.#listen(listener);
      await ended.promise;
    } finally {
      this.#client = undefined;
      await end(client);
    }
  }

  /** Never rejects: a connection that cannot listen is given up, for another one. */
  async #listen(listener: ChannelListener): Promise<void> {
    const client = this.#client;
    try {
      await this.#ask(`listen ${listener.channel}`);
    } catch {
      if (this.#client === client) this.#endNow();
      return;
    }
    if (!this.#listeners.has(listener)) return;
    // What was told while nobody listened.
    listener.onGap();
    listener.onTried();
  }

  #ask(statement: string): Promise<unknown> {
    const client = this.#client;
    const asked = this.#answered.then(() => client?.query(statement));
    this.#answered = asked.catch(() => {});
    return asked;
  }

  #tell(channel: string, payload: string): void {
    for (const listener of this.#listeners) {
      if (listener.channel === channel) listener.onNotice(payload);
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
