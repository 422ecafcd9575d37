/**
 * `npm run bench`: the gateway against a bare proxy, under the same load, in one run. Everything is
 * built in and on 127.0.0.1. How to read the figures: docs/performance.md.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { ProcessFigures } from "./answer.ts";
import { type Child, isPinned, start } from "./child.ts";
import { benchCross } from "./cross.ts";
import { openBenchDatabase, type BenchDatabase } from "./database.ts";
import { audit, createKey, install, type Installation, measureStart, serve } from "./gateway.ts";
import { benchLedger } from "./ledger.ts";
import { benchLog } from "./log.ts";
import { type Contestant, measure, type Measurement, median } from "./measure.ts";
import { type BenchOptions, readOptions, usage } from "./options.ts";
import {
  print,
  printGoal,
  printLedger,
  printLog,
  printScenario,
  printTasks,
  printWebhooks,
  rssGoalBytes,
  startGoalMs,
} from "./report.ts";
import { benchWebhooks } from "./webhooks.ts";
import { publicModel, type Scenario, vendorModel } from "./scenario.ts";
import { openSlowDatabase } from "./slow-disk.ts";
import { benchTasks } from "./tasks.ts";

/** What must be undone, newest first. */
type Cleanup = Array<() => Promise<void> | void>;

async function main(): Promise<void> {
  let options: BenchOptions;
  try {
    options = readOptions(process.argv.slice(2));
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
  print();
  const folder = mkdtempSync(join(tmpdir(), "uas-bench-"));
  cleanup.push(() => rmSync(folder, { recursive: true, force: true }));
  const database = await openBenchDatabase(folder);
  cleanup.push(() => database.close());
  if (options.isLedgerMeasured) await benchLedgers(options, { folder, database, cleanup });
  if (options.areWebhooksMeasured) {
    const receivers = keep(start({ command: ["webhook-receivers.ts"], core: "load" }), cleanup);
    // Long enough that breakers open on the way: they do after five times five seconds.
    const durationMs = options.seconds * 20_000;
    printWebhooks(await benchWebhooks({ url: database.url, receivers, durationMs }));
    await receivers.stop();
  }
  if (options.isLogMeasured) await benchCallLog(options, { folder, cleanup });
  if (options.areTasksMeasured) {
    const load = keep(start({ command: ["task-load.ts"], core: "load" }), cleanup);
    // Long enough to see what waits meanwhile.
    const durationMs = options.seconds * 5_000;
    const kept = (gateway: Child): Child => keep(gateway, cleanup);
    printTasks(await benchTasks({ folder, database, load, durationMs, keep: kept }));
    await load.stop();
  }
  if (options.scenarios.length > 0 || options.isCrossMeasured || options.isStartMeasured) {
    await benchGateway(options, { folder, database, cleanup });
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

interface Place {
  readonly folder: string;
  readonly database: BenchDatabase;
  readonly cleanup: Cleanup;
}

async function benchGateway(options: BenchOptions, place: Place): Promise<void> {
  const { folder, database, cleanup } = place;
  const upstream = keep(start({ command: ["upstream.ts"], core: "load" }), cleanup);
  const upstreamPort = await upstream.ask<number>("listen");
  const installation = await install({ folder, upstreamPort, database });
  const gateway = keep(await serve(installation), cleanup);
  const { rssBytes } = await gateway.ask<ProcessFigures>("figures");
  const load = keep(start({ command: ["load.ts"], core: "load" }), cleanup);
  const key =
    options.scenarios.length > 0 || options.isCrossMeasured ? await createKey(installation) : "";
  if (options.scenarios.length > 0) {
    const bare = keep(start({ command: ["bare-proxy.ts"], core: "contestant" }), cleanup);
    const contestants: readonly Contestant[] = [
      {
        name: "bare proxy",
        process: bare,
        port: await bare.ask<number>("listen", upstreamPort),
        key: "",
        model: vendorModel,
      },
      {
        name: "gateway",
        process: gateway,
        port: installation.port,
        key,
        model: publicModel,
      },
    ];
    for (const scenario of options.scenarios) {
      await benchScenario({ scenario, contestants, load, options });
    }
  }
  if (options.isCrossMeasured) await benchCross(options, { installation, gateway, load, key });
  if (key !== "") await audit(installation);
  if (options.isStartMeasured) {
    // Both leave the embedded server, which stops it: the start is measured with that of the database.
    await gateway.stop();
    if (!process.env["DATABASE_URL"]) await database.close();
    await benchStart(installation, rssBytes);
  }
}

interface ScenarioRun {
  readonly scenario: Scenario;
  readonly contestants: readonly Contestant[];
  readonly load: Child;
  readonly options: BenchOptions;
}

/** The contestants take turns, so that whatever else the machine does meets both. */
async function benchScenario({ scenario, contestants, load, options }: ScenarioRun): Promise<void> {
  const results = new Map<Contestant["name"], Measurement[]>();
  for (let round = 0; round < options.rounds; round++) {
    for (const contestant of contestants) {
      const { seconds } = options;
      const result = await measure(load, contestant, { scenario, seconds, isFirst: round === 0 });
      results.set(contestant.name, [...(results.get(contestant.name) ?? []), result]);
    }
  }
  const of = (name: Contestant["name"]): Measurement => median(results.get(name) ?? []);
  printScenario(scenario, of("bare proxy"), of("gateway"));
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

function keep(child: Child, cleanup: Cleanup): Child {
  cleanup.push(() => child.stop());
  return child;
}

await main();
