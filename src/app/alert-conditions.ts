/** Finds what operators are alerted of: the state of every room, in words. */
import { statfs } from "node:fs/promises";
import type { Condition } from "../alert/operator-alert.ts";
import type { BillingJobs } from "../billing/jobs.ts";
import type { LedgerWriter } from "../billing/ledger/ledger-writer.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Targets } from "../routing/targets.ts";
import type { ClockCheck } from "./clock-check.ts";
import type { ConfigReload } from "./config-reload.ts";

/** Options of {@link createConditions}. */
export interface ConditionsOptions {
  readonly targets: Pick<Targets, "all" | "clock">;
  readonly ledger: Pick<LedgerWriter, "stats">;
  readonly jobs: Pick<BillingJobs, "findings">;
  readonly clock: Pick<ClockCheck, "problem">;
  readonly metrics: Pick<Metrics, "platformLoss">;
  readonly dataDir: string;
  /** The state of the configuration. */
  readonly config: () => Pick<ConfigReload["status"], "problem">;
}

/** A breaker that opens and closes again is no alert. */
const breakerMsMin = 3 * 60_000;

/** A journal that is in use for this long does not drain. */
const journalMsMin = 60_000;

/** The alert of a loss lasts for this long after it. */
const lossMs = 60 * 60_000;

/** Parts of the data disk that are free: below this, it is nearly full. */
const freeShareMin = 0.1;

/** Creates the function that reads what is the case in this process now. */
export function createConditions(options: ConditionsOptions): () => Promise<readonly Condition[]> {
  const hasLoss = createLossWatch(options.metrics);
  const hasJournal = createJournalWatch(options.ledger);
  return async () => {
    const { targets, jobs, clock, dataDir, config } = options;
    const findings = jobs.findings();
    const { problem } = config();
    return [
      ...breakerConditions(targets),
      ...(await diskConditions(dataDir)),
      ...(hasJournal() ? [critical("journal_in_use", journalText)] : []),
      ...((await hasLoss()) ? [critical("platform_loss", lossText)] : []),
      ...(findings > 0 ? [critical("ledger_audit_failed", auditText)] : []),
      ...(clock.problem === undefined ? [] : [critical("clock_wrong", `${clock.problem}.`)]),
      ...(problem === undefined ? [] : [warning("configuration_faulty", configText)]),
    ];
  };
}

const journalText =
  "Settlements wait in the journal because the ledger cannot write them. Look at the database and its disk, and keep the data folder.";
const lossText =
  "Calls cost more than their accounts or prices cover. `uas usage --all --group account` and the log say which.";
const auditText =
  "The ledger audit found broken rules. Run `uas ledger audit`, and do not delete anything until they are explained.";
const configText =
  "A changed configuration could not be loaded; the previous one stays in force. Run `uas check`, and load it again.";

function critical(name: string, text: string, subject = ""): Condition {
  return { name, subject, severity: "critical", text };
}

function warning(name: string, text: string, subject = ""): Condition {
  return { name, subject, severity: "warning", text };
}

function breakerConditions(targets: Pick<Targets, "all" | "clock">): Condition[] {
  const found: Condition[] = [];
  for (const { vendor, model, credential, breaker } of targets.all()) {
    const { open } = breaker;
    if (open === undefined) continue;
    const subject = [vendor, model || credential].filter((part) => part !== "").join(" ");
    if (open.failure === "credential") {
      found.push(critical("credential_refused", credentialText(vendor, credential), subject));
    } else if (open.failure === "model" || targets.clock() - open.openedAtMs >= breakerMsMin) {
      found.push(warning("breaker_open", breakerText(vendor, open.failure), subject));
    }
  }
  return found;
}

function credentialText(vendor: string, credential: string): string {
  const which = credential === "" ? "the credential" : `the credential ${credential}`;
  return `The vendor ${vendor} refuses ${which}, or its account is empty. Correct the key or pay the vendor; calls use other routes if there are any.`;
}

function breakerText(vendor: string, failure: string): string {
  return `Calls to the vendor ${vendor} fail (${failure}), so they go elsewhere if they can. \`uas vendor list\` shows its attempts; look at the vendor's status page.`;
}

async function diskConditions(dataDir: string): Promise<Condition[]> {
  const { bavail, blocks } = await statfs(dataDir);
  if (blocks === 0 || bavail / blocks >= freeShareMin) return [];
  const percent = Math.floor((100 * bavail) / blocks);
  const text = `The disk of the data folder has ${percent} % left. Free some space or enlarge it: on a full disk, calls are refused.`;
  return [warning("disk_nearly_full", text)];
}

function createLossWatch({ platformLoss }: Pick<Metrics, "platformLoss">) {
  let known = 0;
  let lostMs = Number.NEGATIVE_INFINITY;
  return async (): Promise<boolean> => {
    const { values } = await platformLoss.get();
    const total = values.reduce((sum, { value }) => sum + value, 0);
    if (total > known) lostMs = performance.now();
    known = total;
    return performance.now() - lostMs < lossMs;
  };
}

function createJournalWatch(ledger: Pick<LedgerWriter, "stats">) {
  let sinceMs: number | undefined;
  return (): boolean => {
    if (ledger.stats().journalEntries === 0) sinceMs = undefined;
    else sinceMs ??= performance.now();
    return sinceMs !== undefined && performance.now() - sinceMs >= journalMsMin;
  };
}
