/**
 * Hears which calls are written, on a connection of its own. The database tells only where somebody watches, so
 * a process says so while it has a reader.
 */
import type { Pool } from "pg";
import {
  tailRowsMax,
  tailsMax,
  tailsPerAccountMax,
  watchRenewMs,
  watchTtlMs,
} from "../../config/limits.ts";
import { answering } from "../../core/database-lost.ts";
import { Listener } from "../../db/listener.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { newId } from "../../core/uuid.ts";

/** What a {@link CallFeed} needs. */
export interface CallFeedOptions {
  /** The plain pool of the database. */
  readonly pool: Pool;
  /** The database. Contains a password: never logged. */
  readonly url: string;
  /** How often it is said that there are readers, in milliseconds. Default: see limits. */
  readonly renewMs?: number;
}

/** What was written since it was asked for last. */
export interface CallNews {
  /** The calls, at most {@link tailRowsMax}. */
  readonly ids: readonly string[];
  /** How many more there were. */
  readonly skipped: number;
}

/** Reads news until it is disposed. */
export interface CallWatch extends Disposable {
  /**
   * Resolves as soon as there is news, after `ms`, or when the signal of the watch is aborted.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE where news may have been missed: look at the list, and watch again
   */
  next(ms: number): Promise<CallNews>;
}

/** Whose calls are watched where all are. */
const everybody = "00000000-0000-0000-0000-000000000000";

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
   * Begins to watch the calls of an account, or of all, until `signal` is aborted. Calls that are written from
   * then on are told.
   *
   * @throws GatewayError RATE_LIMIT_EXCEEDED where too many watch; SERVICE_UNAVAILABLE where the database is away
   */
  async watch(accountId: string | undefined, signal: AbortSignal): Promise<CallWatch> {
    const account = accountId ?? everybody;
    const reader = this.#enter(account);
    const leave = (): void => this.#leave(account, reader);
    // A reader who has left may never ask for the next message, which would end the stream.
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
      // What was missed before it listened had nobody to miss it.
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
    // Else it expires.
    void this.#options.pool.query(text, [account, this.#watcher]).catch(() => {});
  }

  async #listen(): Promise<void> {
    const { url, renewMs = watchRenewMs } = this.#options;
    this.#timer ??= setInterval(() => {
      // The next one follows soon; where the database is away, the listener's readers hear of that.
      void this.#renew([...this.#readers.keys()]).catch(() => {});
    }, renewMs).unref();
    this.#listener ??= new Listener({
      url,
      channel: "call_written",
      applicationName: "uas-calls-written",
      onNotice: (payload) => this.#tell(payload),
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
    await answering(
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

  /** account, how many, the ids: as `call_notice` writes it. */
  #tell(payload: string): void {
    const [account = "", count = "0", ...ids] = payload.split(" ");
    for (const key of [account, everybody]) {
      for (const reader of this.#readers.get(key) ?? []) reader.take(ids, Number(count));
    }
  }
}

class Reader {
  #ids: string[] = [];
  #skipped = 0;
  #state: "starting" | "reading" | "missed" = "starting";
  #wake: (() => void) | undefined;

  begin(): void {
    this.#state = "reading";
  }

  take(ids: readonly string[], count: number): void {
    this.#ids.push(...ids);
    const over = Math.max(0, this.#ids.length - tailRowsMax);
    this.#ids.splice(0, over);
    this.#skipped += over + count - ids.length;
    this.#wake?.();
  }

  miss(): void {
    if (this.#state === "reading") this.#state = "missed";
    this.#wake?.();
  }

  async next(ms: number, signal: AbortSignal): Promise<CallNews> {
    if (this.#ids.length === 0 && this.#state === "reading" && !signal.aborted) {
      await this.#sleep(ms, signal);
    }
    if (this.#state === "missed") throw missed();
    const news = { ids: this.#ids, skipped: this.#skipped };
    this.#ids = [];
    this.#skipped = 0;
    return news;
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener("abort", end);
      this.#wake = end;
    });
  }
}

function tooMany(): GatewayError {
  return new GatewayError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    "too many live views of the call log are open: close one, or look at the list instead",
  );
}

function missed(): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "the live view has missed calls: look at the list, and ask again",
  );
}
