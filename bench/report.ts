/** Prints what was measured. */
import type { Measurement } from "./measure.ts";
import type { Scenario } from "./scenario.ts";

/** Goals beside the ratios of scenario.ts. */
export const startGoalMs = 3_000;
export const rssGoalBytes = 250 * 1024 * 1024;

/** Prints a line to standard output. */
export function print(line = ""): void {
  process.stdout.write(`${line}\n`);
}

/** Prints one scenario: both contestants and the ratio of their CPU times. Returns whether the goal is met. */
export function printScenario(
  scenario: Scenario,
  bare: Measurement,
  gateway: Measurement,
): boolean {
  const ratio = gateway.cpuMicros / bare.cpuMicros;
  print(scenario.title);
  print(`  ${row(["", `${scenario.unit}s/s`, "p50 ms", "p99 ms", `CPU µs/${scenario.unit}`])}`);
  print(`  ${row(["bare proxy", ...figures(bare)])}`);
  print(`  ${row(["gateway", ...figures(gateway)])}`);
  const isMet = printGoal(`${ratio.toFixed(2)}× the bare proxy's CPU`, ratio, scenario.goal, "×");
  print();
  return isMet;
}

/** Prints a figure beside its goal. Returns whether it is met. */
export function printGoal(text: string, value: number, goal: number, unit: string): boolean {
  const isMet = value <= goal;
  print(`  ${text} (goal: at most ${goal}${unit}) ${isMet ? "ok" : "MISSED"}`);
  return isMet;
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
