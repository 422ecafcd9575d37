/**
 * Feeds live views of the call log, by notices of the database. It notifies only for accounts that
 * are watched, so a process registers the accounts of its readers while it has any.
 */
import type { Pool } from "pg";
import {
  tailRowsMax,
  tailsMax,
  tailsPerAccountMax,
  watchRenewMs,
  watchTtlMs,
} from "../../core/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { Listener } from "../../db/pool/listener.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { newId, nilUuid } from "../../core/uuid.ts";
import { WakeSignal } from "../../core/wake-signal.ts";
import type { DatabaseAddress } from "../../db/pool/server.ts";

/** Options of {@link CallFeed}. */
export interface CallFeedOptions {
  /** The plain pool of the database. */
  readonly pool: Pool;
  /** The database. Contains a password: never logged. */
  readonly url: DatabaseAddress;
  /** Interval between renewals of the readers' registration. Default `watchRenewMs`. */
  readonly renewMs?: number;
}

/** Calls that were written since the last `next`. */
export interface WrittenCalls {
  /** The newest ones, at most {@link tailRowsMax}. */
  readonly ids: readonly string[];
  /** Number of further calls. */
  readonly skipped: number;
}

/** A live view's reader. Disposing it ends the watch. */
export interface CallWatch extends Disposable {
  /**
   * Resolves as soon as a call is written, after `ms`, or when the signal of the watch is aborted.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE if notices may have been missed: read the list, and
   * watch again
   */
  next(ms: number): Promise<WrittenCalls>;
}

/** Stands for all accounts in the table of watchers. */
const allAccounts = nilUuid;

/** Listens from the first watch to {@link close}. */
export class CallFeed {
  readonly #options: CallFeedOptions;
  readonly #watcher = newId();
  readonly #readers = new Map<string, Set<Reader>>();
  #listener: Listener | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CallFeedOptions) {
    this.#options = options;
  }

  /**
   * Watches new calls of an account, or of all, until `signal` is aborted.
   *
   * @throws GatewayError RATE_LIMIT_EXCEEDED if there are too many watchers; SERVICE_UNAVAILABLE if
   * the database is unreachable
   */
  async watch(accountId: string | undefined, signal: AbortSignal): Promise<CallWatch> {
    const account = accountId ?? allAccounts;
    const reader = this.#enter(account);
    const leave = (): void => this.#leave(account, reader);
    // A client that has disconnected may never ask for the next message, which would end the
    // stream.
    signal.addEventListener("abort", leave, { once: true });
    const watch: CallWatch = {
      next: (ms) => reader.next(ms, signal),
      [Symbol.dispose]: () => {
        signal.removeEventListener("abort", leave);
        leave();
      },
    };
    try {
      await this.#listen();
      await this.#renew([account]);
      // A gap before this moment concerns no call of this watch.
      reader.begin();
      return watch;
    } catch (error) {
      watch[Symbol.dispose]();
      throw error;
    }
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#listener?.close();
  }

  #enter(account: string): Reader {
    const readers = this.#readers.get(account) ?? new Set();
    const all = [...this.#readers.values()].reduce((count, { size }) => count + size, 0);
    if (readers.size >= tailsPerAccountMax || all >= tailsMax) throw tooMany();
    const reader = new Reader();
    this.#readers.set(account, readers.add(reader));
    return reader;
  }

  #leave(account: string, reader: Reader): void {
    const readers = this.#readers.get(account);
    if (readers?.delete(reader) !== true || readers.size > 0) return;
    this.#readers.delete(account);
    if (this.#readers.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    const text = "delete from call_watch where account_id = $1 and watcher = $2";
    // Where this fails, the registration expires.
    void this.#options.pool.query(text, [account, this.#watcher]).catch(() => {});
  }

  async #listen(): Promise<void> {
    const { url, renewMs = watchRenewMs } = this.#options;
    this.#timer ??= setInterval(() => {
      // The next renewal follows soon; if the database is unreachable, the listener reports a gap.
      void this.#renew([...this.#readers.keys()]).catch(() => {});
    }, renewMs).unref();
    this.#listener ??= new Listener({
      url,
      channel: "call_written",
      onNotice: (payload) => this.#deliver(payload),
      onGap: () => {
        for (const reader of [...this.#readers.values()].flatMap((each) => [...each]))
          reader.miss();
      },
    });
    await this.#listener.start();
  }

  async #renew(accounts: readonly string[]): Promise<void> {
    if (accounts.length === 0) return;
    const { pool } = this.#options;
    await mapDatabaseLoss(
      pool.query(
        `with gone as (delete from call_watch where expire_time < clock_timestamp() and watcher <> $2)
         insert into call_watch (account_id, watcher, expire_time)
           select account_id, $2, clock_timestamp() + $3 * interval '1 ms'
             from unnest($1::uuid[]) as account_id
           on conflict (account_id, watcher) do update set expire_time = excluded.expire_time`,
        [accounts, this.#watcher, watchTtlMs],
      ),
    );
  }

  /** Delivers a notice: account, count and ids, as the SQL function `call_tell` writes them. */
  #deliver(payload: string): void {
    const [account = "", count = "0", ...ids] = payload.split(" ");
    for (const key of [account, allAccounts]) {
      for (const reader of this.#readers.get(key) ?? []) reader.take(ids, Number(count));
    }
  }
}

class Reader {
  #ids: string[] = [];
  #skipped = 0;
  #state: "starting" | "reading" | "missed" = "starting";
  readonly #signal = new WakeSignal();

  begin(): void {
    this.#state = "reading";
  }

  take(ids: readonly string[], count: number): void {
    this.#ids.push(...ids);
    const over = Math.max(0, this.#ids.length - tailRowsMax);
    this.#ids.splice(0, over);
    this.#skipped += over + count - ids.length;
    this.#signal.wake();
  }

  miss(): void {
    if (this.#state === "reading") this.#state = "missed";
    this.#signal.wake();
  }

  async next(ms: number, signal: AbortSignal): Promise<WrittenCalls> {
    if (this.#ids.length === 0 && this.#state === "reading" && !signal.aborted) {
      await this.#signal.sleep(ms, signal);
    }
    if (this.#state === "missed") throw missed();
    const news = { ids: this.#ids, skipped: this.#skipped };
    this.#ids = [];
    this.#skipped = 0;
    return news;
  }
}

function tooMany(): GatewayError {
  return new GatewayError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    "too many live views of the call log are open: close one, or read the list instead",
  );
}

function missed(): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "the live view has missed calls: read the list, and subscribe again",
  );
}
