/**
 * Receives notifications that other sessions of the database send on a channel. All listeners of a
 * process share one connection.
 */
import type { ChannelListener, ListeningConnection } from "./listening-connection.ts";
import { type DatabaseAddress, toServer } from "./server.ts";

/** Options of a {@link Listener}. */
export interface ListenerOptions {
  /**
   * The database. Listeners with the same servers share a connection. Contains a password: never
   * logged.
   */
  readonly url: DatabaseAddress;
  /** The channel: a plain name, because the statement contains it without quotes. */
  readonly channel: string;
  /** Called with each notification. */
  readonly onNotice: (payload: string) => void;
  /**
   * Called when it begins to listen, and after each loss: notifications may have been missed. Does
   * nothing by default.
   */
  readonly onGap?: () => void;
}

/** Listens from {@link start} to {@link close}. */
export class Listener {
  readonly #connection: ListeningConnection;
  readonly #listener: ChannelListener;
  readonly #firstTry = Promise.withResolvers<void>();

  constructor({ url, channel, onNotice, onGap = () => {} }: ListenerOptions) {
    this.#connection = toServer(url).listening;
    this.#listener = { channel, onNotice, onGap, onTried: this.#firstTry.resolve };
  }

  /**
   * Begins. Resolves when it listens, when the first try has failed, or when it is closed before.
   */
  start(): Promise<void> {
    this.#connection.add(this.#listener);
    return this.#firstTry.promise;
  }

  /** Ends. */
  async close(): Promise<void> {
    await this.#connection.remove(this.#listener);
    this.#firstTry.resolve();
  }
}
