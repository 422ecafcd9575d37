/** What a worker needs, and where a process can die in it. */
import type { Pool } from "pg";
import type { CallRow } from "../billing/calls/call-row.ts";
import type { CallUsage } from "../billing/prices/price.ts";
import type { ModelConfig, PriceConfig } from "../config/config.ts";
import {
  taskFaultMs,
  taskFaultPauseMs,
  taskHeartbeatMs,
  taskLeaseMs,
  taskPollMs,
  taskPollMsMax,
  taskRunMs,
  taskScanMs,
  taskSettleMs,
  taskTrailMs,
  taskUnknownMs,
} from "../config/limits.ts";
import type { TextRunner } from "../inference/text-task.ts";
import type { ResultFiles } from "../result/result.ts";
import type { VendorTasks } from "../vendor/task.ts";
import type { VendorFault } from "../vendor/vendor.ts";
import type { TaskEvent } from "./state.ts";
import type { TaskRow } from "./task-row.ts";
import type { MoveNeeds } from "./transition.ts";

/** What a worker needs. */
export interface WorkerOptions extends MoveNeeds {
  /** A pool of its own: waits for its steps must not hold up callers. */
  readonly pool: Pool;
  /** By vendor name: those that run tasks. */
  readonly vendors: ReadonlyMap<string, WorkerVendor>;
  /** The same for tasks that were submitted in their vendor's own form. Default: none. */
  readonly natives?: ReadonlyMap<string, WorkerVendor>;
  /** Who makes texts. Default: nobody; they are left to processes that do, until their deadline. */
  readonly text?: WorkerText;
  /** By model key. Tasks of others are left to processes that know them, until their deadline. */
  readonly models: ReadonlyMap<string, ModelConfig>;
  readonly results: ResultStore;
  /** The price that a task was held with. */
  readonly findPrice: (version: string) => Promise<PriceConfig | undefined>;
  /** What the vendor takes of the operator for a task, in nano-USD; `undefined`: not known. Default: never. */
  readonly vendorCost?: (task: TaskRow, usage: CallUsage) => bigint | undefined;
  /** Where a vendor may tell that there is news, by attempt token. Default: nowhere. */
  readonly callbackUrl?: (attemptToken: string) => string;
  /** In milliseconds. Default: those of the limits. */
  readonly timings?: Partial<WorkerTimings>;
  /** The most tasks of an account that run at once. Default `taskAccountRunningMax`. */
  readonly accountMax?: number;
  /** From 0 to below 1; decides jitter. Default `Math.random`. */
  readonly random?: () => number;
  /** Told of every answer to a submit, and of those that got none. Default: nobody. */
  readonly onSubmit?: (vendor: string, outcome: SubmitOutcome) => void;
  /** Told each time a vendor refuses the operator's own key, money or model name (R-ERR-3). Default: nobody. */
  readonly onAlarm?: (alarm: VendorAlarm) => void;
  /** Told where a vendor has answered ten questions in a row about a task with nothing that says how it stands, and of
   * every ten more. Default: nobody. */
  readonly onSilent?: (vendor: string, error: unknown) => void;
  /** Told of every task that has ended here, with its record among the calls. Default: nobody. */
  readonly onEnd?: (task: TaskRow, record?: CallRow) => void;
  /** Told what a vendor took for a task that had ended, in nano-USD. Default: nobody. */
  readonly onLateCost?: (task: TaskRow, vendorCostNanos: bigint) => void;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Called at named points, for tests that kill the process there. Default: nothing. */
  readonly at?: (point: WorkerPoint) => void;
}

/** A vendor refuses what is the operator's own. */
export interface VendorAlarm {
  readonly vendor: string;
  /** The vendor's name of the model. */
  readonly model: string;
  readonly fault: VendorFault;
  /** Whether it did not refuse for this reason before. */
  readonly isNew: boolean;
}

/** A vendor that runs tasks. */
export interface WorkerVendor {
  readonly tasks: VendorTasks;
  /** The most tasks that it may have at once; `undefined`: no limit. */
  readonly maxInFlight: number | undefined;
  /** How often it is asked, per second, how tasks stand. Default: as often as there is reason to. */
  readonly pollsPerSecond?: number | undefined;
  /** Its configured address: results may come from there although it is private. */
  readonly baseUrl: string;
  /** Whether its tasks are worth their price without a copy of their files: their customers have the vendor's own
   * addresses of them. Default: not. */
  readonly isFileOptional?: boolean;
}

/** How texts are made. */
export interface WorkerText {
  readonly run: TextRunner;
  /** By name: those that can be asked. */
  readonly vendors: ReadonlyMap<string, Pick<WorkerVendor, "maxInFlight">>;
}

/** Copies results to where they are served. */
export type ResultStore = Pick<ResultFiles, "store">;

/**
 * What came of a submit:
 * - `accepted`: the vendor has it. `done`: it is done with it already.
 * - `refused`: it is not to be tried again. `later`: not now.
 * - `unsent`: there was no connection.
 * - `unknown`: there was no answer; the vendor may have it.
 */
type SubmitOutcome = "accepted" | "done" | "refused" | "later" | "unsent" | "unknown";

/** How long things take, in milliseconds: see the limits of the same names. */
export interface WorkerTimings {
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly scanMs: number;
  readonly runMs: number;
  readonly pollMs: number;
  readonly pollMsMax: number;
  readonly settleMs: number;
  readonly unknownMs: number;
  readonly trailMs: number;
  readonly faultMs: number;
  readonly faultPauseMs: number;
}

/** Where a process can die: before and after a vendor is asked, and before and after a change is durable. */
export type WorkerPoint =
  | "claim.answered"
  | "due.answered"
  | `${"ask" | "told"}.${"submit" | "find" | "poll" | "cancel"}`
  | "file.stored"
  | `trail.${"sent" | "answered"}`
  | `${TaskEvent | "progress"}.${"sent" | "answered"}`;

/* How long the steps of tasks take where nobody says otherwise. */

/** The timings of a worker. @param given default: those of the limits */
export function timingsOf(given: Partial<WorkerTimings> = {}): WorkerTimings {
  return {
    leaseMs: taskLeaseMs,
    heartbeatMs: taskHeartbeatMs,
    scanMs: taskScanMs,
    runMs: taskRunMs,
    pollMs: taskPollMs,
    pollMsMax: taskPollMsMax,
    settleMs: taskSettleMs,
    unknownMs: taskUnknownMs,
    trailMs: taskTrailMs,
    faultMs: taskFaultMs,
    faultPauseMs: taskFaultPauseMs,
    ...given,
  };
}
