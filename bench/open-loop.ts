/**
 * Latency with many connections. The closed loop says how much a contestant can do; the open loop then asks for 60 % of
 * that at fixed times. Latency counts from when a request was due, so a slow reply cannot delay those behind it unseen.
 */
import { type ContestantName, measure, type Measurement } from "./measure.ts";
import { print } from "./report.ts";
import type { RoundsOptions } from "./rounds.ts";
import { scenarioOf } from "./scenario.ts";
import { median, medianOf } from "./statistics.ts";

/** How many connections are open, one run each. */
const connectionCounts = [512, 2_000] as const;

/** The rate of the open loop, as a share of what the closed loop reached just before. */
const rateShare = 0.6;

/** Below this share of the rate the machine had less to give than in the closed loop: latencies are of a growing queue. */
const keptShare = 0.95;

interface Turn {
  readonly closed: Measurement;
  readonly open: Measurement;
  readonly rate: number;
}

/** Measures and prints it. Returns the gateway's p99 as a multiple of its p50 with the fewest connections. */
export async function benchOpenLoop(run: Omit<RoundsOptions, "scenario">): Promise<number> {
  const results: number[] = [];
  for (const connections of connectionCounts)
    results.push(await benchConnections(run, connections));
  return results[0] ?? Number.NaN;
}

async function benchConnections(
  { contestants, load, options }: Omit<RoundsOptions, "scenario">,
  connections: number,
): Promise<number> {
  const { seconds, pauses, rounds } = options;
  const count = connections.toLocaleString("en");
  const scenario = {
    ...scenarioOf("json"),
    connections,
    title: `JSON request of 2 KB, ${count} connections`,
  };
  const turns = new Map<ContestantName, Turn[]>();
  for (let round = 0; round < rounds; round++) {
    for (const contestant of contestants) {
      const common = { scenario, seconds, pauses, isFirst: round === 0, mayRefuse: true };
      const closed = await measure(load, contestant, common);
      const rate = closed.perSecond * rateShare;
      const open = await measure(load, contestant, { ...common, isFirst: false, rate });
      const turn = { closed, open, rate };
      turns.set(contestant.name, [...(turns.get(contestant.name) ?? []), turn]);
    }
  }
  print(scenario.title);
  const columns = ["closed: /s", "p50 ms", "p99 ms", "open: /s", "p50 ms", "p99 ms", "p99/p50"];
  print(`  ${row(["", ...columns])}`);
  for (const [name, each] of turns) print(`  ${row([name, ...figures(each)])}`);
  for (const [name, each] of turns) {
    const late = each.filter(({ open, rate }) => open.perSecond < rate * keptShare).length;
    const refused = each.flatMap(({ closed, open }) => [closed.refusals, open.refusals]);
    const mostRefused = (100 * Math.max(...refused)).toFixed(1);
    if (mostRefused !== "0.0")
      print(`  ${name}: told up to ${mostRefused} % to try again (429, 503)`);
    if (late > 0) print(`  ${name}: fell behind its rate in ${late} of ${each.length} turns`);
  }
  print();
  return tailOf(turns.get("gateway") ?? []);
}

function figures(turns: readonly Turn[]): string[] {
  const closed = medianOf(turns.map((turn) => turn.closed));
  const open = medianOf(turns.map((turn) => turn.open));
  return [
    Math.round(closed.perSecond).toLocaleString("en"),
    closed.latency.p50.toFixed(1),
    closed.latency.p99.toFixed(1),
    Math.round(open.perSecond).toLocaleString("en"),
    open.latency.p50.toFixed(1),
    open.latency.p99.toFixed(1),
    `${tailOf(turns).toFixed(1)}×`,
  ];
}

/** The median over the turns of p99 as a multiple of p50. */
function tailOf(turns: readonly Turn[]): number {
  return median(turns.map(({ open: { latency } }) => latency.p99 / latency.p50));
}

function row([name = "", ...columns]: readonly string[]): string {
  return name.padEnd(12) + columns.map((column) => column.padStart(12)).join("");
}
