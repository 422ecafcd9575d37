/** Answers of probed vendors, as a table and as JSON. */
import type { ProbedVendor } from "./context.ts";
import { cell, table } from "./output.ts";

/** Whether calls to the vendor would fail, too. */
export function isFailed({ verdict }: Pick<ProbedVendor, "verdict">): boolean {
  return verdict === "refused" || verdict === "failing";
}

/** One row for each probed credential. */
export function probeTable(probes: readonly ProbedVendor[]): string {
  const rows = probes.map((probe) => [
    probe.vendor,
    cell(probe.credential ?? null),
    probe.verdict,
    cell(probe.status === undefined ? null : String(probe.status)),
    `${probe.latencyMs} ms`,
    cell(probeNote(probe)),
  ]);
  return table(["VENDOR", "CREDENTIAL", "RESULT", "STATUS", "LATENCY", "NOTE"], rows);
}

/** The message of the vendor, and the models that it does not have. */
export function probeNote({ message, missingModels }: ProbedVendor): string {
  const missing =
    missingModels.length === 0 ? [] : [`the vendor does not list ${missingModels.join(", ")}`];
  return [...(message === "" ? [] : [message]), ...missing].join("; ");
}

/** The JSON of one probe. */
export function probeJson(probe: ProbedVendor) {
  const { vendor, credential, verdict, status, latencyMs, message, missingModels } = probe;
  return {
    vendor,
    credential: credential ?? null,
    verdict,
    status: status ?? null,
    latencyMs,
    message,
    missingModels,
  };
}
