/**
 * `npm run bench`: the gateway against a bare proxy, under the same load, in one run. Everything is
 * built in and on 127.0.0.1. How to read the figures: docs/performance.md.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { measureBodies } from "./body.ts";
import { type Child, isPinned, start } from "./child.ts";
import {
  type Cleanup,
  keep,
  type Place,
  startContestants,
  undo,
  withCleanup,
} from "./contestants.ts";
import { benchCross } from "./cross.ts";
import { openBenchDatabase } from "./database.ts";
import { type Installation, measureStart, ownFolder } from "./gateway.ts";
import { benchLedger } from "./ledger.ts";
import { benchLog } from "./log.ts";
import { type BenchOptions, type PartName, readOptions, usage } from "./options.ts";
import { benchOpenLoop } from "./open-loop.ts";
import {
  print,
  printBodies,
  printGoal,
  printLedger,
  printLog,
  printTasks,
  printWebhooks,
  rssGoalBytes,
  startGoalMs,
} from "./report.ts";
import { printRounds } from "./report-rounds.ts";
import { runRounds } from "./rounds.ts";
import { benchRouting } from "./routing.ts";
import { openSlowDatabase } from "./slow-disk.ts";
import { medianOf } from "./statistics.ts";
import { Summary } from "./summary.ts";
import { benchTasks } from "./tasks.ts";
import { benchWebhooks } from "./webhooks.ts";
import { benchWorkers } from "./workers.ts";

async function main(args: readonly string[]): Promise<void> {
  if (args.includes("--help")) {
    process.stdout.write(usage);
    return;
  }
  let options: BenchOptions;
  try {
    // npm runs scripts in the folder of the package, and says where it was called.
    options = readOptions(args, process.env["INIT_CWD"] ?? process.cwd());
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    process.exitCode = 2;
    return;
  }
  const cleanup: Cleanup = [];
  let undone: Promise<void> | undefined;
  const undoAll = (): Promise<void> => (undone ??= undo(cleanup));
  const abandon = (): void => void undoAll().finally(() => process.exit(1));
  // Gateways and PostgreSQL would outlive this process; a reader that leaves early (| head) ends it too.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, abandon);
  process.stdout.once("error", abandon);
  try {
    await run(options, cleanup);
  } finally {
    await undoAll();
  }
}

async function run(options: BenchOptions, cleanup: Cleanup): Promise<void> {
  print(
    `Node ${process.versions.node}, ${availableParallelism()} cores, ` +
      `${isPinned ? "contestants on core 0, vendor and load on core 1" : "not bound to cores"}; ` +
      `${options.rounds} rounds of ${options.seconds} s, medians`,
  );
  if (options.otherFolder !== undefined) print(`other: ${options.otherFolder}`);
  print();
  const folder = mkdtempSync(join(tmpdir(), "uas-bench-"));
  cleanup.push(() => rmSync(folder, { recursive: true, force: true }));
  const summary = new Summary();
  const { parts } = options;
  if (partsInOnePlace.some((name) => parts.has(name))) {
    await benchParts(options, { folder, cleanup }, summary);
  }
  if (parts.has("body")) {
    summary.set("body", printBodies("gateway", await measureBodies(ownFolder)));
    if (options.otherFolder !== undefined) await benchOtherBodies(options.otherFolder);
  }
  if (isLoaded(options) || parts.has("start")) {
    await benchGateways(options, await makePlace(folder, cleanup), summary);
  }
  summary.print();
}

/** What {@link benchParts} measures. */
const partsInOnePlace: readonly PartName[] = ["ledger", "routing", "webhooks", "log", "tasks"];

/** In a folder and a database of their own, which end with them: thousands of tasks that nobody ends are polled for ever,
 * by every gateway of their database. */
async function benchParts(
  options: BenchOptions,
  parent: Pick<Place, "folder" | "cleanup">,
  summary: Summary,
): Promise<void> {
  const folder = join(parent.folder, "parts");
  mkdirSync(folder);
  await withCleanup(parent.cleanup, async (cleanup) => {
    const place = await makePlace(folder, cleanup);
    const { parts } = options;
    if (parts.has("ledger")) summary.set("ledger", await benchLedgers(options, place));
    if (parts.has("routing") && !(await benchRouting(options, place))) process.exitCode = 1;
    if (parts.has("webhooks")) await benchReceivers(options, place);
    if (parts.has("log")) await benchCallLog(options, place);
    if (parts.has("tasks")) await benchTaskFlight(options, place);
  });
}

async function benchReceivers(
  { seconds }: BenchOptions,
  { database, cleanup }: Place,
): Promise<void> {
  const receivers = keep(start({ command: ["webhook-receivers.ts"], core: "load" }), cleanup);
  // Long enough that breakers open on the way: they do after five times five seconds.
  const durationMs = seconds * 20_000;
  printWebhooks(await benchWebhooks({ url: database.url, receivers, durationMs }));
  await receivers.stop();
}

async function benchTaskFlight(
  { seconds, flight }: BenchOptions,
  { folder, database, cleanup }: Place,
): Promise<void> {
  const load = keep(start({ command: ["task-load.ts"], core: "load" }), cleanup);
  // Long enough to see what waits meanwhile.
  const durationMs = seconds * 5_000;
  const kept = (gateway: Child): Child => keep(gateway, cleanup);
  printTasks(await benchTasks({ folder, database, load, durationMs, flight, keep: kept }));
  await load.stop();
}

/** A database in this folder, until the end. */
async function makePlace(folder: string, cleanup: Cleanup): Promise<Place> {
  const database = await openBenchDatabase(folder);
  cleanup.push(() => database.close());
  return { folder, database, cleanup };
}

/** On the disk as it is, then on one whose fsync takes a millisecond more. Resolves with the slow one's added p99
 * at the highest concurrency in milliseconds; NaN where there is none. */
async function benchLedgers(options: BenchOptions, { folder, database }: Place): Promise<number> {
  const measured = { concurrencies: [1, 64, 256], durationMs: options.seconds * 1_000 };
  printLedger("fsync as it is", await benchLedger({ url: database.url, ...measured }));
  const slow = await openSlowDatabase(folder);
  if (typeof slow === "string") {
    print(`Ledger with fsync slowed by 1 ms: skipped, ${slow}`);
    print();
    return Number.NaN;
  }
  try {
    const result = await benchLedger({ url: slow.url, ...measured });
    printLedger("fsync slowed by 1 ms", result);
    return result.runs.at(-1)?.p99Ms ?? Number.NaN;
  } finally {
    await slow.close();
  }
}

/** Another checkout may have other code there. */
async function benchOtherBodies(folder: string): Promise<void> {
  try {
    printBodies("other", await measureBodies(folder));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    print(`A 1 MB body between two styles, other: skipped, ${reason}`);
    print();
  }
}

/** In a database of its own: the others would be measured with its rows. */
async function benchCallLog(
  { logRows }: BenchOptions,
  { folder, cleanup }: Pick<Place, "folder" | "cleanup">,
): Promise<void> {
  const database = await openBenchDatabase(join(folder, "log"));
  cleanup.push(() => database.close());
  printLog(await benchLog(database.url, logRows));
  await database.close();
}

/** Whether requests are sent to a gateway and a bare proxy. */
function isLoaded({ scenarios, parts }: BenchOptions): boolean {
  return scenarios.length > 0 || parts.has("cross") || parts.has("open") || parts.has("workers");
}

async function benchGateways(options: BenchOptions, place: Place, summary: Summary): Promise<void> {
  const { parts } = options;
  const contestants = await startContestants(options, place, isLoaded(options));
  const { load, gateway, other, all } = contestants;
  for (const scenario of options.scenarios) {
    const rounds = await runRounds({ scenario, contestants: all, load, options });
    printRounds(rounds);
    summary.set(scenario.name, rounds.cpuRatio("gateway", "bare proxy").median);
    if (scenario.name !== "json") continue;
    summary.set("database", rounds.databaseRatio("gateway").median);
    summary.set("switches", medianOf(rounds.of("gateway")).switches);
  }
  if (parts.has("open")) {
    summary.set("open", await benchOpenLoop({ contestants: all, load, options }));
  }
  if (parts.has("cross")) await benchCross(options, { gateway, load });
  if (parts.has("workers")) {
    summary.set("workers", await benchWorkers({ gateway, load, options }));
    if (other !== undefined) await benchWorkers({ gateway: other, load, options });
  }
  if (isLoaded(options)) await contestants.audit();
  if (parts.has("start")) {
    // Both leave the embedded server, which stops it: the start is measured with that of the database.
    await gateway.process.stop();
    if (!process.env["DATABASE_URL"]) await place.database.close();
    await benchStart(gateway.installation, gateway.idleRssBytes);
  }
}

async function benchStart(installation: Installation, rssBytes: number): Promise<void> {
  print("Start and memory");
  const mebibytes = Math.round(rssBytes / 1024 / 1024);
  printGoal(
    `${mebibytes} MiB resident without load`,
    mebibytes,
    rssGoalBytes / 1024 / 1024,
    " MiB",
  );
  const startMs = Math.round(await measureStart(installation));
  printGoal(`${startMs} ms from npm start to ready`, startMs, startGoalMs, " ms");
  print();
}

await main(process.argv.slice(2));
