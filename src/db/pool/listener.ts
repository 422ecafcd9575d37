/** Hears what other sessions of the database tell on a channel. All listeners of a process share one connection. */
import type { ChannelListener, ListeningConnection } from "./listening-connection.ts";
import { type DatabaseAddress, toServer } from "./server.ts";

/** What a {@link Listener} needs. */
export interface ListenerOptions {
  /** The database. Listeners share a connection where they have the same servers. Contains a password: never logged. */
  readonly url: DatabaseAddress;
  /** The channel: a plain name, as it stands in the statement. */
  readonly channel: string;
  /** Gets each notice. */
  readonly onNotice: (payload: string) => void;
  /** Called when it begins to listen, and after each loss: notices may have been missed. Default: nobody. */
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

  /** Begins. Resolves when it listens, when the first try has failed, or when it is closed before. */
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
