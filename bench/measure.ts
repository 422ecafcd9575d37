/** One measurement: a contestant under a load, for a fixed time. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ProcessFigures } from "./answer.ts";
import type { Child } from "./child.ts";
import type { Latency, LoadCount, LoadOptions } from "./load.ts";

/** What is measured against: the gateway or the bare proxy. */
export interface Contestant {
  readonly name: "bare proxy" | "gateway";
  readonly process: Child;
  readonly port: number;
  /** Empty: it needs none. */
  readonly key: string;
  /** The name that it knows a scenario's model by. */
  model(scenario: LoadOptions["scenario"]["name"]): string;
}

/** The result of one measurement. */
export interface Measurement {
  /** Requests or chunks. */
  readonly perSecond: number;
  /** Microseconds of user and system time of the contestant's process per request or chunk. */
  readonly cpuMicros: number;
  readonly latency: Latency;
}

/** Time for connections and caches before the measurement, in milliseconds. */
const warmUpMs = 1_000;

/** The same before the first measurement of a scenario: hot code has to be compiled, on the one core that
 * the contestant has. With 1 s the gateway's figure came out by a third too high. */
const firstWarmUpMs = 3_000;

/** Time for a contestant to finish what it was doing before the other's turn, in milliseconds. */
const restMs = 300;

/** How to measure. */
export interface MeasureOptions extends Pick<LoadOptions, "scenario"> {
  readonly seconds: number;
  /** Whether the contestant has not met this scenario yet. */
  readonly isFirst: boolean;
}

/** @throws Error where a request failed. */
export async function measure(
  load: Child,
  contestant: Contestant,
  { scenario, seconds, isFirst }: MeasureOptions,
): Promise<Measurement> {
  const { port, key } = contestant;
  await load.ask("begin", { scenario, port, key, model: contestant.model(scenario.name) });
  await sleep(isFirst ? firstWarmUpMs : warmUpMs);
  const began = await read(load, contestant, "measure");
  await sleep(seconds * 1_000);
  const ended = await read(load, contestant, "count");
  const latency = await load.ask<Latency>("end");
  await sleep(restMs);
  if (ended.failure) throw new Error(`${contestant.name}, ${scenario.title}: ${ended.failure}`);
  const units = ended.units - began.units;
  if (units <= 0) throw new Error(`${contestant.name}, ${scenario.title}: nothing was answered`);
  return {
    perSecond: units / ((ended.at - began.at) / 1_000),
    cpuMicros: (ended.cpuMicros - began.cpuMicros) / units,
    latency,
  };
}

interface Reading extends ProcessFigures, LoadCount {
  readonly at: number;
}

async function read(load: Child, { process }: Contestant, ask: string): Promise<Reading> {
  const [count, figures] = await Promise.all([
    load.ask<LoadCount>(ask),
    process.ask<ProcessFigures>("figures"),
  ]);
  return { ...count, ...figures, at: performance.now() };
}

/** The middle measurement of each column. */
export function median(measurements: readonly Measurement[]): Measurement {
  const middle = (pick: (measurement: Measurement) => number): number => {
    const sorted = measurements.map(pick).toSorted((a, b) => a - b);
    const at = (sorted.length - 1) / 2;
    return ((sorted[Math.floor(at)] ?? 0) + (sorted[Math.ceil(at)] ?? 0)) / 2;
  };
  return {
    perSecond: middle(({ perSecond }) => perSecond),
    cpuMicros: middle(({ cpuMicros }) => cpuMicros),
    latency: {
      p50: middle(({ latency }) => latency.p50),
      p99: middle(({ latency }) => latency.p99),
    },
  };
}
