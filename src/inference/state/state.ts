/** What inference keeps between calls, put together. */
import type { Pool } from "pg";
import type { Logger } from "pino";
import type { Metrics } from "../../metrics.ts";
import type { Vendor } from "../../vendor/vendor.ts";
import { type BackgroundStore, createBackgroundStore } from "../background/store.ts";
import { createEventLog, type EventLog } from "../background/event-log.ts";
import { createStateJobs, type StateJobs } from "./jobs.ts";
import { createReasoningCarry, type ReasoningCarry } from "./reasoning-carry.ts";
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
export interface InferenceStateOptions {
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
