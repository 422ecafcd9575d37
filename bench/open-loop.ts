/**
 * Latency with many connections. The closed loop measures how much a contestant can do; the open
 * loop then sends 60 % of that at fixed times. Latency counts from the time at which a request was
 * due, so a slow reply cannot hide the delay of others.
 */
import { type ContestantName, measureConnections, type Measurement } from "./measure.ts";
import { print, row } from "./report.ts";
import type { RoundsOptions } from "./rounds.ts";
import { scenarioOf } from "./scenario.ts";
import { median } from "./statistics.ts";

const connections = 512;

/** The rate of the open loop, as a share of the closed loop's just before. */
const rateShare = 0.6;

/**
 * Below this share of its rate the contestant has fallen behind: latencies are of a growing queue.
 */
const keptShare = 0.95;

interface Turn {
  readonly closed: Measurement;
  readonly open: Measurement;
  readonly refused: number;
  readonly isBehind: boolean;
}

/** Measures and prints it. Returns the gateway's p99 as a multiple of its p50. */
export async function benchOpenLoop(run: Omit<RoundsOptions, "scenario">): Promise<number> {
  const { contestants, loads, options } = run;
  const { seconds, rounds } = options;
  const scenario = { ...scenarioOf("json"), connections };
  const turns = new Map<ContestantName, Turn[]>();
  for (let round = 0; round < rounds; round++) {
    for (const contestant of contestants) {
      const turn = { scenario, contestant, seconds, mayRefuse: true, warmUpSeconds: 1 };
      const closed = await measureConnections(loads, turn);
      const rate = closed.perSecond * rateShare;
      const open = await measureConnections(loads, turn, rate);
      const isBehind = open.perSecond < rate * keptShare;
      const result = { closed, open, refused: open.refused, isBehind };
      turns.set(contestant.name, [...(turns.get(contestant.name) ?? []), result]);
    }
  }
  print(`JSON request of 2 KB, ${connections} connections`);
  const columns = ["closed: /s", "p50 ms", "p99 ms", "open: /s", "p50 ms", "p99 ms", "p99/p50"];
  print(`  ${row(["", ...columns], 12)}`);
  for (const [name, each] of turns) print(`  ${row([name, ...figures(each)], 12)}`);
  for (const [name, each] of turns) {
    const refused = each.reduce((sum, turn) => sum + turn.refused, 0);
    const behind = each.filter(({ isBehind }) => isBehind).length;
    if (refused > 0) print(`  ${name}: refused ${refused} requests (429, 503)`);
    if (behind > 0) print(`  ${name}: fell behind its rate in ${behind} of ${each.length} turns`);
  }
  print();
  return tailOf(turns.get("gateway") ?? []);
}

function figures(turns: readonly Turn[]): string[] {
  const middle = (kind: "closed" | "open", figure: keyof Measurement): number =>
    median(turns.map((turn) => turn[kind][figure]));
  const cells = (["closed", "open"] as const).flatMap((kind) => [
    Math.round(middle(kind, "perSecond")).toLocaleString("en"),
    middle(kind, "p50Ms").toFixed(1),
    middle(kind, "p99Ms").toFixed(1),
  ]);
  return [...cells, `${tailOf(turns).toFixed(1)}×`];
}

/** The median over the turns of p99 as a multiple of p50. */
function tailOf(turns: readonly Turn[]): number {
  return median(turns.map(({ open }) => open.p99Ms / open.p50Ms));
}
