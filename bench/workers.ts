/**
 * How much more two workers of the gateway do than one, on all cores; vendor and load stay on theirs. Each of two
 * workers has as many connections as a single one: with half of them it would write batches of half the size.
 */
import { availableParallelism } from "node:os";
import { type Cleanup, type GatewayContestant, keep } from "./contestants.ts";
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
    const [one, two] = [await startWith(1, run, cleanup), await startWith(2, run, cleanup)];
    for (const started of [one, two]) {
      if (typeof started !== "string") continue;
      print(`  not measured: ${started}\n`);
      return Number.NaN;
    }
    return await compare(run, one as Contestant, two as Contestant);
  } finally {
    for (const undo of cleanup.toReversed()) await undo();
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

async function compare(
  { load, options }: WorkersRun,
  one: Contestant,
  two: Contestant,
): Promise<number> {
  const scenario = scenarioOf("json");
  const loadOf = (workers: number): Scenario => ({
    ...scenario,
    connections: workers * scenario.connections,
  });
  const { seconds, pauses, rounds, mayRefuse } = options;
  const ones: Measurement[] = [];
  const twos: Measurement[] = [];
  // Each worker compiles its own code, so two of them need as many requests each.
  for (const contestant of [one, two, two]) await warmUp(load, contestant, options.warmUp);
  for (let round = 0; round < rounds; round++) {
    const turn = { seconds, pauses, mayRefuse, isFirst: round === 0 };
    ones.push(await measure(load, one, { scenario: loadOf(1), ...turn }));
    twos.push(await measure(load, two, { scenario: loadOf(2), ...turn }));
  }
  const clock = ratioOf(
    twos.map(({ perSecond }) => perSecond),
    ones.map(({ perSecond }) => perSecond),
  );
  // Two workers that have a core each do 2 / CPU per request, one does 1 / CPU per request.
  const cpu = ratioOf(
    ones.map(({ cpuMicros }) => 2 * cpuMicros),
    twos.map(({ cpuMicros }) => cpuMicros),
  );
  const cores = availableParallelism();
  print(`  by CPU time, with a core for each worker: ${rangeText(cpu)} the requests of one`);
  print(`  by the clock, on ${cores} cores for everything: ${rangeText(clock)}`);
  for (const [workers, measured] of [ones, twos].entries()) {
    const { perSecond, cpuMicros, databaseMicros } = medianOf(measured);
    const full = Math.round(((workers + 1) * 1_000_000) / cpuMicros).toLocaleString("en");
    print(
      `  ${workers + 1}: ${Math.round(perSecond).toLocaleString("en")} requests/s, ` +
        `${cpuMicros.toFixed(0)} µs of CPU each (PostgreSQL ${databaseMicros.toFixed(0)}): ` +
        `${full} requests/s on cores of its own`,
    );
  }
  print();
  return cores >= coresWanted ? clock.median : cpu.median;
}
