/** The gauges of running calls and their holds, of readiness, and of the machine. */
import { statfsSync } from "node:fs";
import type { BillingJobs } from "../billing/jobs.ts";
import type { LedgerWriter } from "../billing/ledger/ledger-writer.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { ClockCheck } from "./clock-check.ts";
import type { DetachedReplies } from "../calls/pipeline/disconnect.ts";
import type { RunningCalls } from "../calls/running-calls.ts";

/** Registers the gauges. */
export function watchCalls({
  metrics,
  calls,
  detached,
  ledger,
  jobs,
}: {
  metrics: Metrics;
  calls: RunningCalls;
  detached: DetachedReplies;
  ledger: LedgerWriter;
  jobs: BillingJobs;
}): void {
  metrics.gauge("uas_workers", () => 1);
  metrics.gauge("uas_calls_running", () => calls.count);
  metrics.gauge("uas_replies_drained", () => detached.count);
  metrics.gauge("uas_billing_holds_open", () => ledger.stats().openHolds);
  metrics.gauge("uas_billing_settlements_waiting", () => ledger.stats().pendingSettles);
  metrics.gauge("uas_billing_journal_entries", () => ledger.stats().journalEntries);
  metrics.gauge("uas_billing_journal_bytes", () => ledger.stats().journalBytes);
  metrics.gauge("uas_billing_journal_failures", () => ledger.stats().journalFailures);
  metrics.gauge("uas_ledger_audit_findings", () => jobs.findings());
  metrics.gauge("uas_call_records_dropped", () => ledger.stats().droppedRecords);
}

/** Registers the gauge of the machine's clock. */
export function watchClock(metrics: Metrics, clock: Pick<ClockCheck, "aheadMs">): void {
  metrics.gauge("uas_clock_offset_seconds", () => clock.aheadMs / 1_000);
}

/**
 * Registers the gauge of readiness. It shows the answer at the scrape before: a database that is
 * silent must not delay a scrape.
 */
export function watchReadiness(
  metrics: Metrics,
  whyNotReady: () => Promise<string | undefined>,
): void {
  let unready = 0;
  metrics.gauge("uas_unready", () => {
    void whyNotReady().then((reason) => (unready = reason === undefined ? 0 : 1));
    return unready;
  });
}

/** Registers the gauges of the disk of the data folder. */
export function watchDisk(metrics: Metrics, dataDir: string): void {
  metrics.gauge("uas_data_free_bytes", () => {
    const { bavail, bsize } = statfsSync(dataDir);
    return bavail * bsize;
  });
  metrics.gauge("uas_data_size_bytes", () => {
    const { blocks, bsize } = statfsSync(dataDir);
    return blocks * bsize;
  });
}
