/** Options, timings and failpoints of the task worker. */
import type { Pool } from "pg";
import type { CallRow } from "../../billing/calls/call-row.ts";
import type { CallUsage } from "../../billing/prices/cost.ts";
import type { ModelConfig, PriceConfig } from "../../config/config.ts";
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
} from "../../core/limits.ts";
import type { JobRouting } from "../../routing/job-routing.ts";
import type { TextRunner } from "../../calls/adapters/text-task.ts";
import type { ResultFiles } from "../../result/result.ts";
import type { VendorTasks, VendorFault } from "../../provider/task.ts";
import type { ImplausibleUsage } from "./charge.ts";
import type { TaskEvent } from "../state.ts";
import type { TaskRow } from "../task-row.ts";
import type { TransitionOptions } from "../transition.ts";

/** Options of a task worker. */
export interface WorkerOptions extends TransitionOptions {
  /** A pool of its own: its steps must not delay callers. */
  readonly pool: Pool;
  /** Those that run tasks: by vendor name with its first credential, and by {@link vendorKey} with each of several. */
  readonly vendors: ReadonlyMap<string, WorkerVendor>;
  /** Chooses routes and credentials. Default: the first route that can take a task, and the vendor's first credential. */
  readonly routing?: JobRouting | undefined;
  /** The same for tasks of native APIs. Default: none. */
  readonly natives?: ReadonlyMap<string, WorkerVendor>;
  /** Runs TEXT tasks. Default: none; other processes may run them until their deadline. */
  readonly text?: WorkerText;
  /** By model key. Tasks of other models are left to processes that know them, until their deadline. */
  readonly models: ReadonlyMap<string, ModelConfig>;
  readonly results: ResultStore;
  /** Finds the price of a task's hold. */
  readonly findPrice: (version: string) => Promise<PriceConfig | undefined>;
  /** What the vendor charges the operator for a task, in nano-USD; `undefined`: not known. Default: never known. */
  readonly vendorCost?: (task: TaskRow, usage: CallUsage) => bigint | undefined;
  /** The callback address for vendors, by attempt token. Default: none. */
  readonly callbackUrl?: (attemptToken: string) => string;
  /** In milliseconds. Default: those of the limits. */
  readonly timings?: Partial<WorkerTimings>;
  /** The most tasks of an account that run at once. Default `taskAccountRunningMax`. */
  readonly accountMax?: number;
  /** From 0 to below 1; decides jitter. Default `Math.random`. */
  readonly random?: () => number;
  /** Called with every answer to a submit, and of those that got none. Default: nothing. */
  readonly onSubmit?: (vendor: string, outcome: SubmitOutcome) => void;
  /** Called with each time a vendor refuses the operator's own key, money or model name (R-ERR-3). Default: nothing. */
  readonly onAlarm?: (alarm: VendorAlarm) => void;
  /** Called after every ten failed polls of a task in a row. Default: nothing. */
  readonly onSilent?: (vendor: string, error: unknown) => void;
  /** Called with every task that has ended here, with its record among the calls. Default: nothing. */
  readonly onEnd?: (task: TaskRow, record?: CallRow) => void;
  /** Called with each ended task whose vendor reports more than is charged (R-MON-15). Default: nothing. */
  readonly onImplausible?: (task: TaskRow, reported: ImplausibleUsage) => void;
  /** Called with a late charge of a vendor, in nano-USD. Default: nothing. */
  readonly onLateCost?: (task: TaskRow, vendorCostNanos: bigint) => void;
  /** Logs what an operator should know, without secrets. Default: nothing. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Called at failpoints, where tests kill the process. Default: nothing. */
  readonly failpoint?: (point: WorkerFailpoint) => void;
}

/** A vendor refuses the operator's own key, money or model name. */
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
  /** The most polls per second. Default: no limit. */
  readonly pollsPerSecond?: number | undefined;
  /** Its configured address: results may come from there although it is private. */
  readonly baseUrl: string;
  /** Whether tasks are charged without a copy of their files: customers have the vendor's own addresses. Default false. */
  readonly isFileOptional?: boolean;
}

/** Runs TEXT tasks. */
export interface WorkerText {
  readonly run: TextRunner;
  /** By name: vendors of text. */
  readonly vendors: ReadonlyMap<string, Pick<WorkerVendor, "maxInFlight">>;
}

/** Copies results to where they are served. */
export type ResultStore = Pick<ResultFiles, "store">;

/**
 * The result of a submit:
 * - `accepted`: the vendor has it. `done`: the vendor has completed it already.
 * - `refused`: it is not to be tried again. `later`: not now.
 * - `unsent`: there was no connection.
 * - `unknown`: there was no answer; the vendor may have it.
 */
type SubmitOutcome = "accepted" | "done" | "refused" | "later" | "unsent" | "unknown";

/** Timings in milliseconds, explained by the limits of the same names. */
export interface WorkerTimings {
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly scanMs: number;
  readonly runMs: number;
  readonly pollMs: number;
  readonly pollMsMax: number;
  readonly settleMs: number;
  readonly unknownMs: number;
  readonly lateChargeMs: number;
  readonly faultMs: number;
  readonly faultPauseMs: number;
}

/** Failpoints: before and after a vendor request, and before and after a change is durable. */
export type WorkerFailpoint =
  | "claim.answered"
  | "due.answered"
  | `${"request" | "reply"}.${"submit" | "find" | "poll" | "cancel"}`
  | "file.stored"
  | `late_charge.${"sent" | "answered"}`
  | `${TaskEvent | "progress"}.${"sent" | "answered"}`;

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
    lateChargeMs: taskTrailMs,
    faultMs: taskFaultMs,
    faultPauseMs: taskFaultPauseMs,
    ...given,
  };
}
