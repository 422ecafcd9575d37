/** What inference keeps between calls, put together. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { Pool } from "pg";
import type { Logger } from "pino";
import type { ResponseService } from "../../../gen/uas/inference/v1/response_service_pb.ts";
import type { Metrics } from "../../metrics.ts";
import type { Vendor } from "../../vendor/vendor.ts";
import { createStateJobs, type StateJobs } from "./jobs.ts";
import { createReasoningCarry, type ReasoningCarry } from "./reasoning-carry.ts";
import { createResponseService } from "./response-service.ts";
import { createResponseStore, type ResponseStore } from "./response-store.ts";
import { createVendorState } from "./vendor-state.ts";

/** See {@link createInferenceState}. */
export interface InferenceState {
  readonly responses: ResponseStore;
  readonly reasoning: ReasoningCarry;
  readonly service: ServiceImpl<typeof ResponseService>;
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
  const vendorState = createVendorState({ vendors, metrics, log });
  return {
    responses,
    reasoning: createReasoningCarry({ pool, key: masterKey, warn }),
    service: createResponseService({ store: responses, vendorState }),
    jobs: createStateJobs({ pool, store: responses, warn }),
  };
}
