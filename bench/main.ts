/**
 * `npm run bench`: the gateway against a bare proxy, under the same load, in one run. Everything is
 * built in and on 127.0.0.1. How to read the figures: docs/performance.md.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { measureBody } from "./body.ts";
import { type Child, isPinned, start } from "./child.ts";
import { type Cleanup, keep, type Place, startContestants } from "./contestants.ts";
import { benchCross } from "./cross.ts";
import { openBenchDatabase } from "./database.ts";
import { type Installation, measureStart } from "./gateway.ts";
import { benchLedger } from "./ledger.ts";
import { benchLog } from "./log.ts";
import { type BenchOptions, readOptions, usage } from "./options.ts";
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
import { crossScenarios } from "./scenario.ts";
import { openSlowDatabase } from "./slow-disk.ts";
import { benchTasks } from "./tasks.ts";
import { benchWebhooks } from "./webhooks.ts";

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
  try {
    await run(options, cleanup);
  } finally {
    for (const undo of cleanup.toReversed()) await undo();
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
  const database = await openBenchDatabase(folder);
  cleanup.push(() => database.close());
  const place = { folder, database, cleanup };
  const { parts } = options;
  if (parts.has("ledger")) await benchLedgers(options, place);
  if (parts.has("webhooks")) {
    const receivers = keep(start({ command: ["webhook-receivers.ts"], core: "load" }), cleanup);
    // Long enough that breakers open on the way: they do after five times five seconds.
    const durationMs = options.seconds * 20_000;
    printWebhooks(await benchWebhooks({ url: database.url, receivers, durationMs }));
    await receivers.stop();
  }
  if (parts.has("log")) await benchCallLog(options, place);
  if (parts.has("tasks")) {
    const load = keep(start({ command: ["task-load.ts"], core: "load" }), cleanup);
    // Long enough to see what waits meanwhile.
    const durationMs = options.seconds * 5_000;
    const kept = (gateway: Child): Child => keep(gateway, cleanup);
    printTasks(await benchTasks({ folder, database, load, durationMs, keep: kept }));
    await load.stop();
  }
  if (parts.has("body")) {
    printBodies(crossScenarios.map((each) => measureBody(each.caller, each.vendor)));
  }
  if (options.scenarios.length > 0 || parts.has("cross") || parts.has("start")) {
    await benchGateways(options, place);
  }
}

/** On the disk as it is, then on one whose fsync takes a millisecond more. */
async function benchLedgers(options: BenchOptions, { folder, database }: Place): Promise<void> {
  const measured = { concurrencies: [1, 64, 256], durationMs: options.seconds * 1_000 };
  printLedger("fsync as it is", await benchLedger({ url: database.url, ...measured }));
  const slow = await openSlowDatabase(folder);
  if (typeof slow === "string") {
    print(`Ledger with fsync slowed by 1 ms: skipped, ${slow}`);
    print();
    return;
  }
  try {
    printLedger("fsync slowed by 1 ms", await benchLedger({ url: slow.url, ...measured }));
  } finally {
    await slow.close();
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

async function benchGateways(options: BenchOptions, place: Place): Promise<void> {
  const { parts, scenarios } = options;
  const isLoaded = scenarios.length > 0 || parts.has("cross");
  const contestants = await startContestants(options, place, isLoaded);
  const { load, gateway, all } = contestants;
  for (const scenario of scenarios) {
    printRounds(await runRounds({ scenario, contestants: all, load, options }));
  }
  if (parts.has("cross")) await benchCross(options, { gateway, load });
  if (isLoaded) await contestants.audit();
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
