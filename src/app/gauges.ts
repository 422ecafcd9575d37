/** Gauges of running calls and their holds, and the readiness check. */
import type { Pool } from "pg";
import type { BillingJobs } from "../billing/jobs.ts";
import type { LedgerWriter } from "../billing/ledger/ledger-writer.ts";
import type { Metrics } from "../core/metrics.ts";
import type { DetachedReplies } from "../inference/pipeline/disconnect.ts";
import type { RunningCalls } from "../inference/running-calls.ts";

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
  metrics.gauge("uas_calls_running", "Inference calls that run.", () => calls.count);
  metrics.gauge(
    "uas_replies_drained",
    "Replies that are read on although their clients have left.",
    () => detached.count,
  );
  metrics.gauge(
    "uas_billing_holds_open",
    "Holds of this process's calls.",
    () => ledger.stats().openHolds,
  );
  metrics.gauge(
    "uas_billing_settlements_waiting",
    "Settlements that the database does not have yet.",
    () => ledger.stats().pendingSettles,
  );
  metrics.gauge(
    "uas_billing_journal_entries",
    "Settlements in the journal that the database does not have yet.",
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
    "Broken rules of the books that this process's last audit named, at most 100; hourly.",
    () => jobs.findings(),
    "max",
  );
  metrics.gauge(
    "uas_call_records_dropped",
    "Records of refused calls that were lost since the start.",
    () => ledger.stats().droppedRecords,
  );
}

/** How long a readiness result is cached, in milliseconds. */
const readyMs = 1_000;

/**
 * Ready means warmed up, not stopping, and the database answers. Never contacts a vendor.
 *
 * @param isWarm whether the warm-up has ended, or is disabled
 */
export function createReadiness(
  pool: Pool,
  calls: RunningCalls,
  isWarm: () => boolean,
): () => Promise<boolean> {
  let checkedMs = Number.NEGATIVE_INFINITY;
  let answer = Promise.resolve(false);
  return async () => {
    if (!calls.isOpen || !isWarm()) return false;
    if (performance.now() - checkedMs > readyMs) {
      checkedMs = performance.now();
      const query = pool.query("select 1").then(
        () => true,
        () => false,
      );
      const late = new Promise<boolean>((resolve) => {
        setTimeout(resolve, readyMs, false).unref();
      });
      answer = Promise.race([query, late]);
    }
    return answer;
  };
}
