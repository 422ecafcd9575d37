/** Options, timings and failpoints of the task worker. */
import type { Pool } from "pg";
import type { CallRow } from "../../billing/calls/call-row.ts";
import type { CallUsage } from "../../billing/prices/cost.ts";
import type { Config, PriceConfig } from "../../config/config.ts";
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
  /** A separate pool: its steps must not delay callers. */
  readonly pool: Pool;
  /**
   * The vendors that run tasks: by vendor name with the first credential, and by {@link vendorKey}
   * with each of several.
   */
  readonly vendors: ReadonlyMap<string, WorkerVendor>;
  /**
   * Chooses routes and credentials. By default the first route that can run a task, and the
   * vendor's first credential.
   */
  readonly routing?: JobRouting | undefined;
  /** The same for tasks of native APIs. None by default. */
  readonly natives?: ReadonlyMap<string, WorkerVendor>;
  /** Runs TEXT tasks. By default none; other processes may run them until their deadline. */
  readonly text?: WorkerText;
  /**
   * Its models are read at each step. Tasks of other models are left to processes that are
   * configured for them, until their deadline.
   */
  readonly config: Pick<Config, "models">;
  readonly results: ResultStore;
  /** Finds the price of a task's hold. */
  readonly findPrice: (version: string) => Promise<PriceConfig | undefined>;
  /**
   * The vendor's charge to the operator for a task, in nano-USD; undefined if unknown. Unknown by
   * default.
   */
  readonly vendorCost?: (task: TaskRow, usage: CallUsage) => bigint | undefined;
  /** The callback address for vendors, by attempt token. None by default. */
  readonly callbackUrl?: (attemptToken: string) => string;
  /** In milliseconds. The values of limits.ts by default. */
  readonly timings?: Partial<WorkerTimings>;
  /** The most tasks of an account that run at once. Default `taskAccountRunningMax`. */
  readonly accountMax?: number;
  /** From 0 to below 1; decides jitter. Default `Math.random`. */
  readonly random?: () => number;
  /**
   * Called with every answer to a submit, and for submits without an answer. Does nothing by
   * default.
   */
  readonly onSubmit?: (vendor: string, outcome: SubmitOutcome) => void;
  /**
   * Called each time a vendor refuses the operator's key, balance or model name (R-ERR-3). Does
   * nothing by default.
   */
  readonly onAlarm?: (alarm: VendorAlarm) => void;
  /** Called after every ten consecutive failed polls of a task. Does nothing by default. */
  readonly onSilent?: (vendor: string, error: unknown) => void;
  /**
   * Called with every task that has ended in this process, with its call record. Does nothing by
   * default.
   */
  readonly onEnd?: (task: TaskRow, record?: CallRow) => void;
  /**
   * Called with each ended task whose vendor reports more than is charged (R-MON-15). Does nothing
   * by default.
   */
  readonly onImplausible?: (task: TaskRow, reported: ImplausibleUsage) => void;
  /** Called with a late charge of a vendor, in nano-USD. Does nothing by default. */
  readonly onLateCost?: (task: TaskRow, vendorCostNanos: bigint) => void;
  /** Logs a warning for operators, without secrets. Does nothing by default. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Called at failpoints, where tests kill the process. Does nothing by default. */
  readonly failpoint?: (point: WorkerFailpoint) => void;
}

/** A vendor refuses the operator's key, balance or model name. */
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
  /** Maximum number of concurrent tasks; undefined for no limit. */
  readonly maxInFlight: number | undefined;
  /** Maximum number of polls per second. Unlimited by default. */
  readonly pollsPerSecond?: number | undefined;
  /** Its configured address: results may come from it although it is private. */
  readonly baseUrl: string;
  /**
   * Whether tasks are charged without a copy of their files: customers have the vendor's addresses.
   * Default false.
   */
  readonly isFileOptional?: boolean;
}

/** Runs TEXT tasks. */
export interface WorkerText {
  readonly run: TextRunner;
  /** By name: vendors of text. */
  readonly vendors: ReadonlyMap<string, Pick<WorkerVendor, "maxInFlight">>;
}

/** Copies results to the gateway's result store. */
export type ResultStore = Pick<ResultFiles, "store">;

/**
 * The result of a submit:
 * - `accepted`: the vendor has it. `done`: the vendor has completed it already.
 * - `refused`: it must not be tried again. `later`: not now.
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

/**
 * The timings of a worker.
 *
 * @param given the values of limits.ts by default
 */
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
