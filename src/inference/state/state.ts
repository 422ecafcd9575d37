/** What inference keeps between calls, put together. */
import type { Pool } from "pg";
import type { Logger } from "pino";
import { storedEventsTtlMs, storedResponseTtlMs } from "../../config/limits.ts";
import { singleFlight } from "../../core/async.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Vendor } from "../../vendor/vendor.ts";
import { createEventLog, type EventLog } from "../background/event-log.ts";
import { createBackgroundStore, type BackgroundStore } from "../background/store.ts";
import { createReasoningCarry, type ReasoningCarry } from "./reasoning.ts";
import { createResponseStore, type ResponseStore } from "./response-store.ts";
import { createVendorState, type VendorState } from "./vendor-state.ts";

/** See {@link createInferenceState}. */
export interface InferenceState {
  readonly responses: ResponseStore;
  readonly reasoning: ReasoningCarry;
  /** What is made in the background, in the same table as {@link responses}. */
  readonly background: BackgroundStore;
  /** The events of those that are read as streams. */
  readonly events: EventLog;
  readonly vendorState: VendorState;
  readonly jobs: StateJobs;
}

/** What {@link createInferenceState} needs. */
interface InferenceStateOptions {
  readonly pool: Pool;
  /** The master key, 32 bytes. */
  readonly masterKey: Uint8Array;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Makes the parts over one database; the jobs are not started. */
export function createInferenceState(options: InferenceStateOptions): InferenceState {
  const { pool, masterKey, vendors, metrics, log } = options;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const responses = createResponseStore({ pool });
  return {
    responses,
    reasoning: createReasoningCarry({ pool, key: masterKey, warn }),
    background: createBackgroundStore(pool, responses),
    events: createEventLog(pool),
    vendorState: createVendorState({ vendors, metrics, log }),
    jobs: createStateJobs({ pool, store: responses, warn }),
  };
}

/* What the kept state needs by itself: that what has expired is deleted, and limits hold. */

/** What {@link createStateJobs} needs. */
interface StateJobsOptions {
  /** The plain pool of the database. */
  readonly pool: Pool;
  readonly store: ResponseStore;
  /** How often, in milliseconds. Default ten minutes: what has expired is not given out meanwhile. */
  readonly everyMs?: number;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The jobs of a process. Every node may run them at once. */
interface StateJobs {
  /** Begins, with a first run in the background. */
  start(): void;
  /** Ends; what is under way is waited for. */
  stop(): Promise<void>;
  /** Deletes what has expired, now. Returns how many rows that were. */
  expire(): Promise<number>;
}

const everyMsDefault = 10 * 60 * 1_000;

/** How many rows go in one statement: a long one would hold up others. */
const batch = 1_000;

/** A response is written anew when it is made: its end counts. */
const eventsSql = `
delete from response_event e using stored_response r
  where r.account_id = e.account_id and r.id = e.response_id
    and r.expires_at < now() + ${storedResponseTtlMs - storedEventsTtlMs} * interval '1 ms'`;

const tables = ["stored_response", "kept_reasoning"] as const;

/** Makes the jobs; {@link StateJobs.start} begins. */
export function createStateJobs(options: StateJobsOptions): StateJobs {
  const { pool, store, everyMs = everyMsDefault, warn = () => {} } = options;
  let timer: NodeJS.Timeout | undefined;
  const expire = async (): Promise<number> => {
    let deleted = 0;
    for (const table of tables) deleted += await expireRows(pool, table);
    return deleted + ((await pool.query(eventsSql, [])).rowCount ?? 0);
  };
  const job = singleFlight(
    async () => {
      await expire();
      await store.trim();
    },
    (error) => warn("deleting expired state failed: tried again later", { err: error }),
  );
  return {
    start() {
      if (timer !== undefined) return;
      void job();
      timer = setInterval(() => void job(), everyMs);
      timer.unref();
    },
    async stop() {
      clearInterval(timer);
      timer = undefined;
      await job.ended();
    },
    expire,
  };
}

/** In batches; rows that somebody else deletes or extends at this moment are left to them. */
async function expireRows(pool: Pool, table: (typeof tables)[number]): Promise<number> {
  for (let deleted = 0; ; ) {
    const { rowCount } = await pool.query(
      `delete from ${table} where ctid = any(array(
         select ctid from ${table} where expires_at < now()
         order by expires_at limit ${batch} for update skip locked))`,
    );
    deleted += rowCount ?? 0;
    if ((rowCount ?? 0) < batch) return deleted;
  }
}
