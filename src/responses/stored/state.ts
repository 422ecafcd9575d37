/** Builds the state that outlives calls, and its periodic jobs. */
import type { Pool } from "pg";
import type { Logger } from "pino";
import { storedEventsTtlMs, storedResponseTtlMs } from "../../core/limits.ts";
import type { Metrics } from "../../observe/metrics.ts";
import { periodic, type PeriodicJobs } from "../../core/periodic.ts";
import type { Vendor } from "../../provider/vendor.ts";
import { createReasoningCarry, type ReasoningCarry } from "./reasoning.ts";
import { createResponseStore, type ResponseStore } from "./response-store.ts";
import { createVendorState, type VendorState } from "./vendor-state.ts";

/** State that calls store for later calls. */
export interface StoredState {
  readonly responses: ResponseStore;
  readonly reasoning: ReasoningCarry;
  readonly vendorState: VendorState;
  readonly jobs: StateJobs;
}

/** Options of {@link createStoredState}. */
interface StoredStateOptions {
  readonly pool: Pool;
  /** The connections of the jobs. */
  readonly jobPool: Pool;
  /** The master key, 32 bytes. */
  readonly masterKey: Uint8Array;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Creates the state over one database. The jobs are not started. */
export function createStoredState(options: StoredStateOptions): StoredState {
  const { pool, jobPool, masterKey, vendors, metrics, log } = options;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const responses = createResponseStore({ pool });
  return {
    responses,
    reasoning: createReasoningCarry({ pool, key: masterKey, warn }),
    vendorState: createVendorState({ vendors, metrics, log }),
    jobs: createStateJobs({ pool: jobPool, store: responses, warn }),
  };
}

/** Options of {@link createStateJobs}. */
interface StateJobsOptions {
  /** The connections of the jobs. */
  readonly pool: Pool;
  readonly store: ResponseStore;
  /**
   * The interval. Default ten minutes: reads ignore expired rows, so a late deletion is harmless.
   */
  readonly everyMs?: number;
  /** Called with warnings for the operator, without secrets. Default: no callback. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** The periodic jobs of a process. Several processes may run them at once. */
interface StateJobs extends PeriodicJobs {
  /** Deletes expired rows now. @returns their number */
  expire(): Promise<number>;
}

const everyMsDefault = 10 * 60 * 1_000;

/** Rows per statement: a longer one would block others. */
const batch = 1_000;

/**
 * The expiry of a response is set again at its end, from which the age of its events is computed.
 */
const eventsSql = `
delete from response_event e using stored_response r
  where r.account_id = e.account_id and r.id = e.response_id
    and r.expires_at < now() + ${storedResponseTtlMs - storedEventsTtlMs} * interval '1 ms'`;

const tables = ["stored_response", "kept_reasoning"] as const;

/** Creates the jobs; {@link StateJobs.start} starts them. */
export function createStateJobs(options: StateJobsOptions): StateJobs {
  const { pool, store, everyMs = everyMsDefault, warn = () => {} } = options;
  const expire = async (): Promise<number> => {
    let deleted = 0;
    for (const table of tables) deleted += await expireRows(pool, table);
    return deleted + ((await pool.query(eventsSql, [])).rowCount ?? 0);
  };
  const run = async (): Promise<void> => {
    await expire();
    await store.trim();
  };
  const onError = (error: unknown): void =>
    warn("deleting expired state failed; trying again later", { err: error });
  return { ...periodic([{ run, everyMs, onError }]), expire };
}

/** Deletes expired rows in batches. Skips rows that another transaction deletes or extends. */
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
