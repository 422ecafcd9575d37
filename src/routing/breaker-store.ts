/**
 * The open breakers of all processes. The database says when the next probe may begin, so that all processes together
 * make one per cooldown, whatever dies in between. SQL because a probe is claimed in one statement.
 */
import type { Pool } from "pg";
import type { Logger } from "pino";
import { Listener } from "../db/pool/listener.ts";
import { cooldownGrowthMax, type AttemptFailure } from "./breaker.ts";
import type { DatabaseAddress } from "../db/pool/server.ts";

/** The names of what a breaker protects; empty: it protects all of them. */
export interface BreakerKey {
  readonly vendor: string;
  readonly model: string;
  readonly credential: string;
}

/** A stored open breaker. */
export interface StoredBreaker extends BreakerKey {
  readonly failure: AttemptFailure;
  /** Milliseconds to the next probe; 0 or less: it may begin. */
  readonly waitMs: number;
}

/** Options of {@link BreakerStore}. */
export interface BreakerStoreOptions {
  readonly pool: Pick<Pool, "query">;
  /** The database URL. It contains a password: never log it. */
  readonly url: DatabaseAddress;
  readonly log: Logger;
  /** Called with all open breakers when any of them changed, in any process. */
  readonly onChange: (open: readonly StoredBreaker[]) => void;
}

const channel = "breaker";

/** A pause with up to 20 % more or less, so that processes and breakers do not probe in step. */
const jitter = "(0.8 + 0.4 * random())";

const openStatement = `
with opened as (
  insert into breaker (vendor, model, credential, failure, cooldown_ms, probe_time)
    values ($1, $2, $3, $4, $5::int, clock_timestamp() + ${jitter} * $5::int * interval '1 ms')
    on conflict do nothing returning vendor
) select pg_notify('${channel}', vendor) from opened`;

/** Doubles the cooldown at once: a probe that fails, or whose process dies, needs no second write. */
const claimStatement = `
with claimed as (
  update breaker set cooldown_ms = least(cooldown_ms * 2, $4::int * ${cooldownGrowthMax}),
      probe_time = clock_timestamp()
        + ${jitter} * least(cooldown_ms * 2, $4::int * ${cooldownGrowthMax}) * interval '1 ms'
    where vendor = $1 and model = $2 and credential = $3 and probe_time <= clock_timestamp()
    returning vendor
) select pg_notify('${channel}', vendor) from claimed`;

const closeStatement = `
with closed as (
  delete from breaker where vendor = $1 and model = $2 and credential = $3 returning vendor
) select pg_notify('${channel}', vendor) from closed`;

const loadStatement = `
select vendor, model, credential, failure,
    (extract(epoch from probe_time - clock_timestamp()) * 1000)::float8 as "waitMs" from breaker`;

/** Shares the open breakers with the other processes. A failed write is logged: this process still knows its own. */
export class BreakerStore {
  readonly #options: BreakerStoreOptions;
  readonly #listener: Listener;
  readonly #running = new Set<Promise<void>>();

  constructor(options: BreakerStoreOptions) {
    this.#options = options;
    const load = (): void => this.#track(this.#load());
    this.#listener = new Listener({
      url: options.url,
      channel,
      onNotice: load,
      onGap: load,
    });
  }

  /** Starts to listen. Resolves when the open breakers are loaded, or the database could not be reached. */
  async start(): Promise<void> {
    await this.#listener.start();
    await Promise.all(this.#running);
  }

  async stop(): Promise<void> {
    await this.#listener.close();
    await Promise.all(this.#running);
  }

  /** Stores that a breaker opened. */
  open(key: BreakerKey, failure: AttemptFailure, cooldownMs: number): void {
    this.#track(this.#query(openStatement, [...columns(key), failure, cooldownMs]).then(() => {}));
  }

  /** Stores that a breaker closed. */
  close(key: BreakerKey): void {
    this.#track(this.#query(closeStatement, columns(key)).then(() => {}));
  }

  /**
   * Claims the probe of a cooldown. Resolves to whether this process may make it: no other one may until the next,
   * longer cooldown is over. Never rejects: without the database nothing is probed.
   */
  async claim(key: BreakerKey, cooldownMs: number): Promise<boolean> {
    try {
      return (await this.#query(claimStatement, [...columns(key), cooldownMs])) > 0;
    } catch (error) {
      this.#warn(error);
      return false;
    }
  }

  async #query(text: string, values: readonly unknown[]): Promise<number> {
    const { rowCount } = await this.#options.pool.query(text, [...values]);
    return rowCount ?? 0;
  }

  async #load(): Promise<void> {
    this.#options.onChange(await readBreakers(this.#options.pool));
  }

  #track(work: Promise<void>): void {
    const done = work
      .catch((error: unknown) => this.#warn(error))
      .finally(() => this.#running.delete(done));
    this.#running.add(done);
  }

  #warn(error: unknown): void {
    this.#options.log.warn({ err: error }, "the state of circuit breakers could not be shared");
  }
}

/** Reads the open breakers of all processes. */
export async function readBreakers(pool: Pick<Pool, "query">): Promise<readonly StoredBreaker[]> {
  return (await pool.query<StoredBreaker>(loadStatement)).rows;
}

function columns({ vendor, model, credential }: BreakerKey): string[] {
  return [vendor, model, credential];
}
