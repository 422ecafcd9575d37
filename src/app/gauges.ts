/** The gauges of running calls, of their holds, and of the machine's clock. */
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
  metrics.gauge("uas_workers", "Processes that serve calls.", () => 1);
  metrics.gauge("uas_calls_running", "Running inference calls.", () => calls.count);
  metrics.gauge(
    "uas_replies_drained",
    "Replies that are read to their end after the client disconnected.",
    () => detached.count,
  );
  metrics.gauge(
    "uas_billing_holds_open",
    "Holds of this process's calls.",
    () => ledger.stats().openHolds,
  );
  metrics.gauge(
    "uas_billing_settlements_waiting",
    "Settlements that are not in the database yet.",
    () => ledger.stats().pendingSettles,
  );
  metrics.gauge(
    "uas_billing_journal_entries",
    "Settlements in the journal that are not in the database yet.",
    () => ledger.stats().journalEntries,
  );
  metrics.gauge(
    "uas_billing_journal_bytes",
    "Bytes of this process's settlement journal.",
    () => ledger.stats().journalBytes,
  );
  metrics.gauge(
    "uas_billing_journal_failures",
    "Writes to the settlement journal that failed since the start.",
    () => ledger.stats().journalFailures,
  );
  metrics.gauge(
    "uas_ledger_audit_findings",
    "Violated ledger rules in this process's last hourly audit, at most 100.",
    () => jobs.findings(),
    "max",
  );
  metrics.gauge(
    "uas_call_records_dropped",
    "Records of refused calls that were lost since the start.",
    () => ledger.stats().droppedRecords,
  );
}

/** Registers the gauge of the machine's clock. */
export function watchClock(metrics: Metrics, clock: Pick<ClockCheck, "aheadMs">): void {
  metrics.gauge(
    "uas_clock_offset_seconds",
    "Seconds by which this machine's clock is ahead of the database's, compared every minute. Negative if it is behind.",
    () => clock.aheadMs / 1_000,
    "max",
  );
}
