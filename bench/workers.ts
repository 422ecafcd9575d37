/**
 * How much more two workers of the gateway do than one, on all cores; vendor and load stay on theirs. Each of two
 * workers has as many connections as a single one: with half of them it would write batches of half the size.
 *
 * On a machine of few cores, where they compete with vendor, load and PostgreSQL, CPU time is compared. There, whatever
 * keeps all cores busy costs every process CPU, so that one worker is measured beside another gateway of one worker, which
 * has nothing but the database in common with it.
 */
import { availableParallelism } from "node:os";
import { type Child, start } from "./child.ts";
import { type Cleanup, type GatewayContestant, keep, undo } from "./contestants.ts";
import { serve, withWorkers } from "./gateway.ts";
import { type Contestant, measure, type Measurement, warmUp } from "./measure.ts";
import { descendants } from "./proc.ts";
import { print } from "./report.ts";
import { rangeText } from "./report-rounds.ts";
import type { RoundsOptions } from "./rounds.ts";
import { type Scenario, scenarioOf } from "./scenario.ts";
import { medianOf, ratioOf } from "./statistics.ts";

/** What {@link benchWorkers} needs. */
export interface WorkersRun extends Pick<RoundsOptions, "load" | "options"> {
  /** Its database, configuration and API key are used; it keeps running. */
  readonly gateway: GatewayContestant;
}

/** Two workers, load, vendor and PostgreSQL each have a core: wall-clock figures mean something. */
const coresWanted = 6;

/**
 * Measures and prints it. Returns the throughput of two workers as a multiple of one's: by the clock where the machine
 * has cores enough, else by CPU time; NaN where there is no second worker.
 */
export async function benchWorkers(run: WorkersRun): Promise<number> {
  print(`JSON request of 2 KB, ${run.gateway.name} with one and with two workers (UAS_WORKERS)`);
  const cleanup: Cleanup = [];
  try {
    const started: Contestant[] = [];
    for (const workers of [1, 1, 2]) {
      const gateway = await startWith(workers, run, cleanup);
      if (typeof gateway === "string") {
        print(`  not measured: ${gateway}\n`);
        return Number.NaN;
      }
      started.push(gateway);
    }
    const [one, neighbour, two] = started as [Contestant, Contestant, Contestant];
    const loads = [run.load, keep(start({ command: ["load.ts"], core: "load" }), cleanup)] as const;
    return await compare(run.options, loads, { one, neighbour, two });
  } finally {
    await undo(cleanup);
  }
}

/** Resolves with the reason where the gateway does not run with so many workers. */
async function startWith(
  workers: number,
  { gateway }: WorkersRun,
  cleanup: Cleanup,
): Promise<Contestant | string> {
  const installation = await withWorkers(gateway.installation, workers);
  try {
    const child = keep(await serve(installation, "both"), cleanup);
    if (process.platform === "linux" && workers > 1 && descendants(child.pid).length < workers) {
      return `with UAS_WORKERS=${workers} this gateway does not start ${workers} processes`;
    }
    return { ...gateway, process: child, port: installation.port };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Gateways that are compared. */
interface Compared {
  readonly one: Contestant;
  /** Another one of one worker. */
  readonly neighbour: Contestant;
  readonly two: Contestant;
}

async function compare(
  { seconds, pauses, rounds, mayRefuse, warmUp: wanted }: RoundsOptions["options"],
  [load, neighbourLoad]: readonly [Child, Child],
  { one, neighbour, two }: Compared,
): Promise<number> {
  const scenario = scenarioOf("json");
  const doubled: Scenario = { ...scenario, connections: 2 * scenario.connections };
  const ones: Measurement[] = [];
  const pairs: Measurement[] = [];
  const twos: Measurement[] = [];
  // Each worker compiles its own code, so two of them need as many requests each.
  for (const contestant of [one, neighbour, two, two]) await warmUp(load, contestant, wanted);
  for (let round = 0; round < rounds; round++) {
    const turn = { seconds, pauses, mayRefuse, isFirst: round === 0 };
    ones.push(await measure(load, one, { scenario, ...turn }));
    const both = [
      measure(load, one, { scenario, ...turn }),
      measure(neighbourLoad, neighbour, { scenario, ...turn }),
    ];
    pairs.push(together(await Promise.all(both)));
    twos.push(await measure(load, two, { scenario: doubled, ...turn }));
  }
  const clock = ratioOf(
    twos.map(({ perSecond }) => perSecond),
    ones.map(({ perSecond }) => perSecond),
  );
  // Two workers that have a core each do 2 / CPU per request, one does 1 / CPU per request.
  const cpu = ratioOf(
    pairs.map(({ cpuMicros }) => 2 * cpuMicros),
    twos.map(({ cpuMicros }) => cpuMicros),
  );
  const cores = availableParallelism();
  print(`  by CPU time, with a core for each worker: ${rangeText(cpu)} the requests of one`);
  print(`  by the clock, on ${cores} cores for everything: ${rangeText(clock)}`);
  const rows: ReadonlyArray<readonly [title: string, measured: readonly Measurement[]]> = [
    ["one worker", ones],
    ["one worker beside another gateway", pairs],
    ["two workers", twos],
  ];
  for (const [title, measured] of rows) {
    const { perSecond, cpuMicros, databaseMicros } = medianOf(measured);
    print(
      `  ${title}: ${Math.round(perSecond).toLocaleString("en")} requests/s, ` +
        `${cpuMicros.toFixed(0)} µs of CPU each (PostgreSQL ${databaseMicros.toFixed(0)})`,
    );
  }
  print();
  return cores >= coresWanted ? clock.median : cpu.median;
}

/** Two gateways that were measured at once: what a request took on average. Their PostgreSQL is the same. */
function together(measured: readonly Measurement[]): Measurement {
  const [first] = measured as [Measurement];
  const perSecond = measured.reduce((sum, each) => sum + each.perSecond, 0);
  const cpu = measured.reduce((sum, each) => sum + each.cpuMicros * each.perSecond, 0);
  const database = first.databaseMicros * first.perSecond;
  return { ...first, perSecond, cpuMicros: cpu / perSecond, databaseMicros: database / perSecond };
}
