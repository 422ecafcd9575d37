/** How long the steps of tasks take where nobody says otherwise. */
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
} from "../config/task-limits.ts";
import type { WorkerTimings } from "./worker-options.ts";

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
