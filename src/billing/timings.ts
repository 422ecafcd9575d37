/** How long the ledger's things take, unless a test says otherwise. */
import {
  holdRenewMs,
  holdSweepMs,
  holdTtlMs,
  holdWaitMs,
  nodeHeartbeatMs,
  nodeSilentMs,
} from "../config/limits.ts";
import type { LedgerTimings } from "./ledger.ts";

/** The timings of limits.ts, less those that are given. */
export function ledgerTimings(given: Partial<LedgerTimings>): LedgerTimings {
  return {
    heartbeatMs: given.heartbeatMs ?? nodeHeartbeatMs,
    silentMs: given.silentMs ?? nodeSilentMs,
    holdTtlMs: given.holdTtlMs ?? holdTtlMs,
    renewMs: given.renewMs ?? holdRenewMs,
    sweepMs: given.sweepMs ?? holdSweepMs,
    holdWaitMs: given.holdWaitMs ?? holdWaitMs,
  };
}
