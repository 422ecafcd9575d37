/** Prints what was measured. */
import type { LedgerBenchResult } from "./ledger.ts";
import type { LogBench } from "./log.ts";
import type { Measurement } from "./measure.ts";
import type { BodyResult } from "./body.ts";
import type { TaskBenchResult } from "./tasks.ts";
import type { WebhookBenchResult } from "./webhooks.ts";
import { bodyGoal, crossGoal } from "./scenario.ts";

/** Goals beside the ratios of scenario.ts. */
export const startGoalMs = 3_000;
export const rssGoalBytes = 250 * 1024 * 1024;

/** Prints a line to standard output. */
export function print(line = ""): void {
  process.stdout.write(`${line}\n`);
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

/** Prints how long large bodies block the loop. Returns the most, as a multiple of a JSON.parse. */
export function printBodies(name: string, results: readonly BodyResult[]): number {
  print(`A 1 MB body between two styles, ${name}`);
  print(`  ${crossRow(["caller from vendor", "parse ms", "cross ms", "× parse", "quietest"])}`);
  for (const { title, parseMs, crossMs, ratio } of results) {
    print(
      `  ${crossRow([title, ...[parseMs, crossMs, ratio.median, ratio.quietest].map((value) => value.toFixed(2))])}`,
    );
  }
  const most = Math.max(...results.map(({ ratio }) => ratio.median));
  printGoal(`at most ${most.toFixed(2)}× a JSON.parse`, most, bodyGoal, "×");
  print();
  return most;
}

/** What one hot account must do: calls per second in all, milliseconds of the 99th of 100 calls at
 * {@link ledgerConcurrency}, milliseconds beside one commit while nothing else happens. */
const ledgerGoals = { callsPerSecond: 10_000, p99Ms: 25, idleMs: 0.5 };

/** Prints the ledger's figures. @param disk how the database's disk is */
export function printLedger(disk: string, { runs, idle }: LedgerBenchResult): void {
  print(`Ledger: hold, settle and record on one hot account, ${disk}`);
  print(`  ${row(["in flight", "calls/s", "added p50 ms", "added p99 ms", "CPU µs/call"])}`);
  for (const { concurrency, callsPerSecond, p50Ms, p99Ms, cpuUsPerCall } of runs) {
    const rate = Math.round(callsPerSecond).toLocaleString("en");
    const columns = [rate, p50Ms.toFixed(2), p99Ms.toFixed(2), cpuUsPerCall.toFixed(1)];
    print(`  ${row([String(concurrency), ...columns])}`);
  }
  const best = Math.max(...runs.map(({ callsPerSecond }) => callsPerSecond));
  const isMet = best >= ledgerGoals.callsPerSecond;
  const rateGoal = ledgerGoals.callsPerSecond.toLocaleString("en");
  print(`  goal: at least ${rateGoal} calls/s ${isMet ? "ok" : "MISSED"}`);
  const most = runs.at(-1);
  if (most !== undefined) {
    const text = `99 of 100 calls wait ${most.p99Ms.toFixed(1)} ms at ${most.concurrency} in flight`;
    printGoal(text, most.p99Ms, ledgerGoals.p99Ms, " ms");
  }
  const added = Math.max(idle.holdMs, idle.settleMs) - idle.commitMs;
  const waits = `commit ${idle.commitMs.toFixed(2)}, hold ${idle.holdMs.toFixed(2)}, settle ${idle.settleMs.toFixed(2)} ms`;
  printGoal(
    `idle: ${waits}; ${added.toFixed(2)} ms above a commit`,
    added,
    ledgerGoals.idleMs,
    " ms",
  );
  print();
}

/** Milliseconds that any answer about the call log may take. */
const logGoalMs = 200;

/** Prints what was asked of the call log. */
export function printLog({ rows, fillSeconds, results }: LogBench): void {
  print(`Call log of ${rows.toLocaleString("en")} rows, filled in ${fillSeconds.toFixed(0)} s`);
  const line = ([title = "", ...cells]: readonly string[]): string =>
    title.padEnd(36) + cells.map((cell) => cell.padStart(10)).join("");
  print(`  ${line(["question", "found", "p50 ms", "worst ms"])}`);
  for (const { title, found, p50Ms, worstMs } of results) {
    print(`  ${line([title, String(found), p50Ms.toFixed(1), worstMs.toFixed(1)])}`);
  }
  const worst = Math.max(...results.map(({ worstMs }) => worstMs));
  printGoal(`every answer within ${worst.toFixed(0)} ms`, worst, logGoalMs, " ms");
  print();
}

/** Milliseconds that 99 of 100 first attempts may wait. */
const webhookGoalMs = 250;

/** Prints how webhooks passed receivers that hang. */
export function printWebhooks(result: WebhookBenchResult): void {
  const { sent, arrived, p50Ms, p99Ms, cpuUsPerAttempt } = result;
  print("Webhooks: 260 receivers of which 60 hang, 100 events/s of which 60 to these, 100 slots");
  print(`  ${row(["", "events", "arrived", "p50 ms", "p99 ms", "CPU µs/try"])}`);
  const cells = [sent, arrived, p50Ms, p99Ms, Math.round(cpuUsPerAttempt)].map(String);
  print(`  ${row(["answering", ...cells])}`);
  printGoal(`${p99Ms} ms to the first attempt for 99 of 100`, p99Ms, webhookGoalMs, " ms");
  print();
}

/** Submits a second at least, milliseconds from submit to webhook beyond the vendor's, MiB with 10,000 tasks. */
const taskGoals = { perSecond: 500, endMs: 150, rssMebibytes: 300 };

/** Prints what tasks take. */
export function printTasks({ submits, cpuUsPerSubmit, end, flight }: TaskBenchResult): void {
  print("Tasks: submits over 50 accounts while a vendor works on 1,000 of them");
  print(`  ${row(["", "accepted", "per second", "p50 ms", "p99 ms", "CPU µs/submit"])}`);
  const { accepted, refused, perSecond, p50Ms, p99Ms } = submits;
  const cells = [accepted, Math.round(perSecond), p50Ms.toFixed(1), p99Ms.toFixed(1)];
  print(`  ${row(["submits", ...cells.map(String), cpuUsPerSubmit.toFixed(0)])}`);
  const isFast = perSecond >= taskGoals.perSecond;
  print(`  goal: at least ${taskGoals.perSecond} submits/s ${isFast ? "ok" : "MISSED"}`);
  if (refused > 0)
    print(`  ${refused} were told to try again: the database did not answer in time`);
  const told = `submit to webhook of a demo picture, beyond the vendor's time: p50 ${end.p50Ms.toFixed(0)}, p99 ${end.p99Ms.toFixed(0)} ms`;
  printGoal(told, end.p50Ms, taskGoals.endMs, " ms for half of them");
  const [before, mebibytes] = [flight.rssBeforeBytes, flight.rssBytes].map(toMebibytes);
  const held = `${mebibytes} MiB resident with ${flight.tasks.toLocaleString("en")} tasks in flight, ${before} before the first`;
  printGoal(held, mebibytes ?? 0, taskGoals.rssMebibytes, " MiB");
  print();
}

function toMebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}

/** Prints a figure beside the most that it may be. */
export function printGoal(text: string, value: number, goal: number, unit: string): void {
  print(`  ${text} (goal: at most ${goal}${unit}) ${value <= goal ? "ok" : "MISSED"}`);
}

function row([name = "", ...columns]: readonly string[]): string {
  return name.padEnd(12) + columns.map((column) => column.padStart(15)).join("");
}
