/**
 * `npm run bench`: the gateway against a bare proxy, under the same load, in one run on 127.0.0.1.
 * How to read the figures: docs/performance.md.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { isPinned } from "./child.ts";
import { type Contestants, startContestants } from "./contestants.ts";
import type { Cleanup } from "./database.ts";
import { benchLimits } from "./limits.ts";
import { type Contestant, measure, warmUp } from "./measure.ts";
import { missingTools } from "./native-tools.ts";
import { benchOpenLoop } from "./open-loop.ts";
import { type BenchOptions, readOptions, usage } from "./options.ts";
import { print, printRounds, printSummary } from "./report.ts";
import { runRounds } from "./rounds.ts";
import { scenarioOf, vendorModel } from "./scenario.ts";

async function main(args: readonly string[]): Promise<void> {
  if (args.includes("--help")) {
    process.stdout.write(usage);
    return;
  }
  let options: BenchOptions;
  try {
    const missing = missingTools();
    if (missing !== undefined) throw new Error(missing);
    // npm runs scripts in the folder of the package, and passes the folder in which it was called.
    options = readOptions(args, process.env["INIT_CWD"] ?? process.cwd());
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 2;
    return;
  }
  const cleanup: Cleanup = [];
  let undone: Promise<void> | undefined;
  const undoAll = (): Promise<void> => (undone ??= undo(cleanup));
  const abandon = (): void => void undoAll().finally(() => process.exit(1));
  // Gateways and PostgreSQL would outlive this process; a reader that leaves early (| head) ends it
  // too. npm passes on a signal that this process may also get itself, so the second one must not
  // end it.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, abandon);
  process.stdout.once("error", abandon);
  try {
    await run(options, cleanup);
  } finally {
    await undoAll();
  }
}

async function undo(cleanup: Cleanup): Promise<void> {
  for (const step of cleanup.toReversed()) await step();
}

async function run(options: BenchOptions, cleanup: Cleanup): Promise<void> {
  const { rounds, seconds, otherFolder, parts } = options;
  print(
    `Node ${process.versions.node}, ${availableParallelism()} cores, ` +
      `${isPinned ? "contestants on core 0, vendors and load on core 1" : "not bound to cores"}; ` +
      `${rounds} rounds of ${seconds} s, medians`,
  );
  if (otherFolder !== undefined) print(`other: ${otherFolder}`);
  print();
  const folder = mkdtempSync(join(tmpdir(), "uas-bench-"));
  cleanup.push(() => rmSync(folder, { recursive: true, force: true }));
  const contestants = await startContestants(folder, otherFolder, cleanup);
  const measured = await benchScenarios(options, contestants);
  const { loads, all, gateway } = contestants;
  if (parts.has("open")) {
    measured.set("open", await benchOpenLoop({ contestants: all, loads, options }));
  }
  if (parts.has("limits")) measured.set("limits", await benchLimits(gateway, options.pairs));
  await contestants.audit();
  printSummary(measured);
}

async function benchScenarios(
  options: BenchOptions,
  contestants: Contestants,
): Promise<Map<string, number>> {
  const measured = new Map<string, number>();
  const { loads, all } = contestants;
  const { mayRefuse, warmUpRequests } = options;
  const json = scenarioOf("json");
  for (const contestant of all) {
    await warmUp(loads, { scenario: json, contestant, mayRefuse, seconds: 1 }, warmUpRequests);
  }
  for (const scenario of options.scenarios) {
    const rounds = await runRounds({ scenario, contestants: all, loads, options });
    printRounds(rounds);
    measured.set(scenario.name, rounds.ratio("gateway", "cpuMicros", "bare proxy").median);
    if (scenario.name !== "json") continue;
    await printHeadroom(options, contestants, rounds.median("bare proxy", "perSecond"));
    measured.set("database", rounds.ratio("gateway", "databaseMicros", "bare proxy").median);
  }
  return measured;
}

/**
 * Prints how much faster than the bare proxy vendor and load are, without a contestant between
 * them.
 */
async function printHeadroom(
  { seconds, mayRefuse }: BenchOptions,
  { loads, vendors, all }: Contestants,
  bareRate: number,
): Promise<void> {
  const [bare] = all as [Contestant];
  const contestant = { ...bare, ports: vendors, model: vendorModel };
  const scenario = scenarioOf("json");
  const turn = { scenario, contestant, seconds, mayRefuse, warmUpSeconds: 0 };
  const { perSecond } = await measure(loads, turn);
  const rate = Math.round(perSecond).toLocaleString("en");
  const times = (perSecond / bareRate).toFixed(1);
  print(`  wrk and nginx alone: ${rate} requests/s, ${times} times as many as the bare proxy`);
  print();
}

await main(process.argv.slice(2));
