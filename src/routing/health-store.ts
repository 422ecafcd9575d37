/**
 * Stores what the processes count of routes and credentials, so that it adds up and survives restarts. SQL because all
 * rows of a process are written in one statement.
 */
import type { Pool } from "pg";
import type { Logger } from "pino";
import { singleFlight } from "../core/async.ts";
import type { Clock } from "../core/clock.ts";
import { newId } from "../core/uuid.ts";
import type { BreakerKey } from "./breaker-store.ts";
import { type AttemptCounts, emptyCounts } from "./breaker.ts";
import type { Target, Targets } from "./targets.ts";

/**
 * How often changed counts are written, in milliseconds: operators see a breaker within a second, and so the failures that
 * opened it.
 */
const writeMs = 1_000;

/** How often calls in flight are written that nothing else changes, in milliseconds: readers believe them for 10 s. */
const repeatMs = 4_000;

const minuteMs = 60_000;

/** How long counts are kept. */
const keptText = "1 day";

/** Options of {@link HealthStore}. */
interface HealthStoreOptions {
  readonly pool: Pick<Pool, "query">;
  /** Tells the minute that counts are of. */
  readonly clock: Pick<Clock, "now">;
  readonly targets: Targets;
  readonly log: Logger;
}

/** Writes the counts of a process, from {@link start} to {@link stop}. */
export class HealthStore {
  readonly #options: HealthStoreOptions;
  readonly #processId = newId();
  readonly #write: ReturnType<typeof singleFlight>;
  #timer: NodeJS.Timeout | undefined;
  #minute = 0;
  /** Attempts and calls in flight of each target when it was last written, and when that was. */
  readonly #written = new Map<Target, { readonly state: string; readonly atMs: number }>();

  constructor(options: HealthStoreOptions) {
    this.#options = options;
    this.#write = singleFlight(
      () => this.#writeAll(),
      (error) => options.log.warn({ err: error }, "the health of vendors could not be stored"),
    );
  }

  start(): Promise<void> {
    this.#timer = setInterval(() => void this.#write(), writeMs).unref();
    return Promise.resolve();
  }

  /** Writes the rest. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#write.ended();
    await this.#write();
  }

  async #writeAll(): Promise<void> {
    const { pool, clock, targets } = this.#options;
    targets.showPauses();
    const minute = Math.floor(clock.now() / minuteMs);
    const isNew = this.#minute !== minute;
    // What came since the last write still counts for the minute before.
    const rows = this.#changed([...targets.all()], isNew ? this.#minute || minute : minute);
    if (rows.length > 0) await pool.query(writeStatement, [JSON.stringify(rows)]);
    if (!isNew) return;
    this.#minute = minute;
    for (const { health } of targets.all()) health.restart();
    this.#written.clear();
    await pool.query(`delete from route_health where minute < now() - interval '${keptText}'`);
  }

  #changed(targets: readonly Target[], minute: number) {
    const nowMs = performance.now();
    const zeroMs = this.#options.clock.now() - nowMs;
    return targets.flatMap((target) => {
      const { vendor, model, credential, inFlight, health } = target;
      const { attempts, failures, latencies } = health.counts;
      const state = `${attempts} ${inFlight}`;
      const before = this.#written.get(target) ?? { state: "0 0", atMs: nowMs };
      const isRepeated = inFlight > 0 && nowMs - before.atMs >= repeatMs;
      if (state === before.state && !isRepeated) return [];
      this.#written.set(target, { state, atMs: nowMs });
      const { lastFailure } = health;
      const isOfMinute = failures > 0 && lastFailure !== undefined;
      return [
        {
          ...{ vendor, model, credential, process: this.#processId, attempts, failures, latencies },
          minute: new Date(minute * minuteMs).toISOString(),
          in_flight: inFlight,
          failure: isOfMinute ? lastFailure.what : "",
          failure_time: isOfMinute ? new Date(zeroMs + lastFailure.atMs).toISOString() : null,
          update_time: new Date(this.#options.clock.now()).toISOString(),
        },
      ];
    });
  }
}

const writeStatement = `
insert into route_health
  select (json_populate_record(null::route_health, row)).* from json_array_elements($1::json) row
  on conflict (minute, process, vendor, model, credential) do update set
    attempts = excluded.attempts, failures = excluded.failures, latencies = excluded.latencies,
    in_flight = excluded.in_flight, failure = excluded.failure,
    failure_time = excluded.failure_time, update_time = excluded.update_time`;

/** The health of a route or credential, of all processes. */
export interface StoredHealth extends BreakerKey {
  /** Of the last 15 minutes. */
  readonly counts: AttemptCounts;
  readonly inFlight: number;
  /** The last failure of the last day; `undefined`: none. */
  readonly failure: { readonly what: string; readonly time: Date } | undefined;
}

interface HealthRow extends BreakerKey {
  readonly attempts: number;
  readonly failures: number;
  readonly latencies: number[];
  readonly in_flight: number;
  readonly failure: string;
  readonly failure_time: Date | null;
  readonly is_recent: boolean;
  readonly is_now: boolean;
}

/** A process repeats its calls in flight; one that has not written for 10 s has none, or is gone. */
const readStatement = `
select vendor, model, credential, attempts, failures, latencies, in_flight, failure, failure_time,
    minute > now() - interval '16 minutes' as is_recent,
    update_time > now() - interval '10 seconds'
      and update_time = max(update_time) over (partition by process, vendor, model, credential)
      as is_now
  from route_health where failures > 0 or minute > now() - interval '16 minutes'
  order by minute`;

/** Reads the stored health. */
export async function readHealth(pool: Pick<Pool, "query">): Promise<readonly StoredHealth[]> {
  const { rows } = await pool.query<HealthRow>(readStatement);
  const found = new Map<string, StoredHealth>();
  for (const row of rows) {
    const { vendor, model, credential } = row;
    const key = JSON.stringify([vendor, model, credential]);
    found.set(key, add(found.get(key), row));
  }
  return [...found.values()];
}

function add(before: StoredHealth | undefined, row: HealthRow): StoredHealth {
  const { vendor, model, credential, is_recent: isRecent, failure, failure_time: time } = row;
  const counts = before?.counts ?? emptyCounts();
  if (isRecent) {
    counts.attempts += row.attempts;
    counts.failures += row.failures;
    for (const [index, count] of row.latencies.entries()) {
      counts.latencies[index] = (counts.latencies[index] ?? 0) + count;
    }
  }
  const isLater = time !== null && (before?.failure === undefined || time > before.failure.time);
  return {
    ...{ vendor, model, credential, counts },
    inFlight: (before?.inFlight ?? 0) + (row.is_now ? row.in_flight : 0),
    failure: isLater ? { what: failure, time } : before?.failure,
  };
}
