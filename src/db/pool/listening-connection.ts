/**
 * The single connection on which a process receives notifications (LISTEN), for all listeners. It
 * reconnects automatically. With a connection per channel, a process had six of them: managed
 * databases allow few, and each costs the server several megabytes and 6 ms to open.
 *
 * Every wait has a timeout, because a connection that breaks while opening answers neither a query
 * nor a close.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Client, ClientConfig } from "pg";

/** Pause before another connection is tried. */
const reconnectMs = 1_000;

/** Maximum time to open a connection, and to answer a statement. */
const answerTimeoutMs = 2_000;

/** Maximum time for an orderly close. */
const endTimeoutMs = 500;

/** A listener on a channel. */
export interface ChannelListener {
  /** The channel: a plain name, because the statement contains it without quotes. */
  readonly channel: string;
  /** Called with the payload of each notification. */
  onNotice(payload: string): void;
  /** It listens now, or lost the connection: notifications may have been missed. */
  onGap(): void;
  /** It listens now, or the first try has failed. Called again with each try. */
  onTried(): void;
}

/** Creates a connection with a time limit for opening. */
type CreateClient = (config: ClientConfig & { readonly connectLimitMs: number }) => Client;

/** Opens the connection with the first listener, and ends it with the last one. */
export class ListeningConnection {
  readonly #createClient: CreateClient;
  readonly #listeners = new Set<ChannelListener>();
  #running: Promise<void> | undefined;
  /** Aborted with the last listener. */
  #unused = new AbortController();
  /** The open connection; undefined if there is none. */
  #client: Client | undefined;
  /** Resolves when the last statement is answered: the driver runs one at a time. */
  #answered: Promise<unknown> = Promise.resolve();
  /** Ends the current connection. */
  #endNow: () => void = () => {};

  constructor(createClient: CreateClient) {
    this.#createClient = createClient;
  }

  /** Adds a listener, which listens until {@link remove}; an existing one stays unchanged. */
  add(listener: ChannelListener): void {
    if (this.#listeners.has(listener)) return;
    this.#listeners.add(listener);
    if (this.#client !== undefined) void this.#listen(listener);
    this.#running ??= this.#run();
  }

  /**
   * Removes a listener. Resolves when its statement has ended; for the last listener, when the
   * connection has closed.
   */
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
    // A listener may have been added while the connection ended.
    this.#running = this.#listeners.size > 0 ? this.#run() : undefined;
  }

  /** Runs one connection. Resolves or rejects when it has ended. */
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

  /** Never rejects: a connection that cannot listen is replaced. */
  async #listen(listener: ChannelListener): Promise<void> {
    const client = this.#client;
    try {
      await this.#ask(`listen ${listener.channel}`);
    } catch {
      if (this.#client === client) this.#endNow();
      return;
    }
    if (!this.#listeners.has(listener)) return;
    // Reports that notifications before this moment may be lost.
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

/** A client whose connection broke before it was open never emits its end. */
async function end(client: Client): Promise<void> {
  const late = new AbortController();
  const pause = delay(endTimeoutMs, undefined, { signal: late.signal }).catch(() => {});
  await Promise.race([client.end().catch(() => {}), pause]);
  late.abort();
}
