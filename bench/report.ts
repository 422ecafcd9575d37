/** Prints what was measured. */
import type { LedgerBenchResult } from "./ledger.ts";
import type { Measurement } from "./measure.ts";
import type { BodyResult } from "./body.ts";
import { bodyGoal, crossGoal, type Scenario } from "./scenario.ts";

/** Goals beside the ratios of scenario.ts. */
export const startGoalMs = 3_000;
export const rssGoalBytes = 250 * 1024 * 1024;

/** Prints a line to standard output. */
export function print(line = ""): void {
  process.stdout.write(`${line}\n`);
}

/** Prints one scenario: both contestants, and the ratio of their CPU times. */
export function printScenario(scenario: Scenario, bare: Measurement, gateway: Measurement): void {
  const ratio = gateway.cpuMicros / bare.cpuMicros;
  print(scenario.title);
  print(`  ${row(["", `${scenario.unit}s/s`, "p50 ms", "p99 ms", `CPU µs/${scenario.unit}`])}`);
  print(`  ${row(["bare proxy", ...figures(bare)])}`);
  print(`  ${row(["gateway", ...figures(gateway)])}`);
  printGoal(`${ratio.toFixed(2)}× the bare proxy's CPU`, ratio, scenario.goal, "×");
  print();
}

/** What one direction of translation took. */
export interface CrossResult {
  readonly title: string;
  readonly measurement: Measurement;
}

/** Prints every direction of translation beside relaying. */
export function printCross(relayed: Measurement, results: readonly CrossResult[]): void {
  print("Translating between styles, 200 streams × 50 chunks/s");
  print(`  ${crossRow(["caller from vendor", "p50 ms", "p99 ms", "CPU µs/chunk", "× relay"])}`);
  print(`  ${crossRow(["chat, relayed", ...crossFigures(relayed, relayed)])}`);
  for (const { title, measurement } of results) {
    print(`  ${crossRow([title, ...crossFigures(measurement, relayed)])}`);
  }
  const most = Math.max(...results.map((each) => each.measurement.cpuMicros / relayed.cpuMicros));
  printGoal(`at most ${most.toFixed(2)}× the CPU of relaying`, most, crossGoal, "×");
  print();
}

function crossFigures({ latency, cpuMicros }: Measurement, relayed: Measurement): string[] {
  return [
    latency.p50.toFixed(2),
    latency.p99.toFixed(2),
    cpuMicros.toFixed(1),
    (cpuMicros / relayed.cpuMicros).toFixed(2),
  ];
}

function crossRow([name = "", ...columns]: readonly string[]): string {
  return name.padEnd(26) + columns.map((column) => column.padStart(14)).join("");
}

/** Prints how long large bodies block the loop. */
export function printBodies(results: readonly BodyResult[]): void {
  print("A 1 MB body between two styles");
  print(`  ${crossRow(["caller to vendor", "parse ms", "cross ms", "× parse"])}`);
  for (const { title, parseMs, crossMs } of results) {
    const ratio = (crossMs / parseMs).toFixed(2);
    print(`  ${crossRow([title, parseMs.toFixed(2), crossMs.toFixed(2), ratio])}`);
  }
  const most = Math.max(...results.map(({ parseMs, crossMs }) => crossMs / parseMs));
  printGoal(`at most ${most.toFixed(2)}× a JSON.parse`, most, bodyGoal, "×");
  print();
}

/** Calls per second that one hot account must take. */
const ledgerGoal = 10_000;

/** Prints the ledger's figures. */
export function printLedger(results: readonly LedgerBenchResult[]): void {
  print("Ledger: hold, settle and record on one hot account");
  print(`  ${row(["in flight", "calls/s", "p50 ms", "p99 ms", "CPU µs/call"])}`);
  for (const { concurrency, callsPerSecond, p50Ms, p99Ms, cpuUsPerCall } of results) {
    const rate = Math.round(callsPerSecond).toLocaleString("en");
    print(
      `  ${row([String(concurrency), rate, p50Ms.toFixed(2), p99Ms.toFixed(2), cpuUsPerCall.toFixed(1)])}`,
    );
  }
  const best = Math.max(...results.map(({ callsPerSecond }) => callsPerSecond));
  const isMet = best >= ledgerGoal;
  print(`  goal: at least ${ledgerGoal.toLocaleString("en")} calls/s ${isMet ? "ok" : "MISSED"}`);
  print();
}

/** Prints a figure beside the most that it may be. */
export function printGoal(text: string, value: number, goal: number, unit: string): void {
  print(`  ${text} (goal: at most ${goal}${unit}) ${value <= goal ? "ok" : "MISSED"}`);
}

function figures({ perSecond, latency, cpuMicros }: Measurement): string[] {
  return [
    Math.round(perSecond).toLocaleString("en"),
    latency.p50.toFixed(2),
    latency.p99.toFixed(2),
    cpuMicros.toFixed(cpuMicros < 100 ? 1 : 0),
  ];
}

function row([name = "", ...columns]: readonly string[]): string {
  return name.padEnd(12) + columns.map((column) => column.padStart(15)).join("");
}
