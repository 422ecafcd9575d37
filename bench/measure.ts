/** One measurement: a contestant under a load, for a fixed time. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ProcessFigures } from "./answer.ts";
import type { Child } from "./child.ts";
import type { Latency, LoadCount, LoadOptions } from "./load.ts";
import type { Pauses, WarmUp } from "./options.ts";
import { descendantUsage, postgresCpuMicros } from "./proc.ts";
import { scenarioOf } from "./scenario.ts";

/** A process that answers requests: the bare proxy or a gateway. */
export interface Contestant {
  readonly name: ContestantName;
  readonly process: Child;
  readonly port: number;
  /** Empty: it needs none. */
  readonly key: string;
  /** The parent of its PostgreSQL's processes; `undefined`: it has none, or on another machine. */
  readonly postmaster: number | undefined;
  /** The name that it knows a scenario's model by. */
  model(scenario: LoadOptions["scenario"]["name"]): string;
}

/** `other` is the gateway of another checkout. */
export type ContestantName = "bare proxy" | "gateway" | "other";

/** The result of one measurement. */
export interface Measurement {
  /** Requests or chunks. */
  readonly perSecond: number;
  /** Microseconds of user and system time of the contestant's processes per request or chunk. */
  readonly cpuMicros: number;
  /** The same of its PostgreSQL; NaN where it has none. */
  readonly databaseMicros: number;
  /** Context switches of the contestant's processes per request or chunk. */
  readonly switches: number;
  /** Replies that said "try again", per request that was answered. */
  readonly refusals: number;
  readonly latency: Latency;
}

/** How to measure. */
export interface MeasureOptions extends Pick<LoadOptions, "scenario" | "rate" | "mayRefuse"> {
  readonly seconds: number;
  readonly pauses: Pauses;
  /** Whether the contestant has not met this scenario yet. */
  readonly isFirst: boolean;
}

/** How long a load may take to open its connections and to get its first reply, in milliseconds. */
const startTimeoutMs = 60_000;

/** How long between two looks at a load, in milliseconds. */
const pollMs = 20;

/** @throws Error where a request failed. */
export async function measure(
  load: Child,
  contestant: Contestant,
  options: MeasureOptions,
): Promise<Measurement> {
  const { scenario, seconds, pauses, isFirst } = options;
  await begin(load, contestant, options);
  await sleep(isFirst ? pauses.firstWarmUpMs : pauses.warmUpMs);
  await until(load, `${contestant.name}, ${scenario.title}`, ({ isRunning }) => isRunning);
  const began = await read(load, contestant, "measure");
  await sleep(seconds * 1_000);
  // At least one unit, however slow the machine is.
  await until(load, `${contestant.name}, ${scenario.title}`, ({ units }) => units > began.units);
  const ended = await read(load, contestant, "count");
  const latency = await load.ask<Latency>("end");
  await sleep(pauses.restMs);
  const units = ended.units - began.units;
  return {
    perSecond: units / ((ended.at - began.at) / 1_000),
    cpuMicros: (ended.cpuMicros - began.cpuMicros) / units,
    // Ended backends are counted in ticks of 10 ms, living ones in nanoseconds: a short turn may come out below 0.
    databaseMicros: Math.max(0, ended.databaseMicros - began.databaseMicros) / units,
    switches: (ended.switches - began.switches) / units,
    refusals: (ended.refusals - began.refusals) / units,
    latency,
  };
}

/** Loads a contestant with JSON requests until it has answered as many, or for as long, as is asked for. */
export async function warmUp(load: Child, contestant: Contestant, wanted: WarmUp): Promise<void> {
  await begin(load, contestant, { scenario: scenarioOf("json"), mayRefuse: true });
  const began = performance.now();
  await until(load, `${contestant.name}, warm-up`, ({ units }) =>
    "requests" in wanted
      ? units >= wanted.requests
      : performance.now() - began >= wanted.seconds * 1_000,
  );
  await load.ask("end");
}

async function begin(
  load: Child,
  contestant: Contestant,
  { scenario, rate, mayRefuse }: Pick<LoadOptions, "scenario" | "rate" | "mayRefuse">,
): Promise<void> {
  const { port, key } = contestant;
  const model = contestant.model(scenario.name);
  await load.ask("begin", { scenario, port, key, model, rate, mayRefuse });
}

/** @throws Error where a request failed, or nothing is answered any more. */
async function until(
  load: Child,
  title: string,
  isDone: (count: LoadCount) => boolean,
): Promise<void> {
  let last = -1;
  for (let deadline = performance.now() + startTimeoutMs; ; await sleep(pollMs)) {
    const count = await load.ask<LoadCount>("count");
    if (count.failure) throw new Error(`${title}: ${count.failure}`);
    if (isDone(count)) return;
    if (count.units > last) deadline = performance.now() + startTimeoutMs;
    last = count.units;
    if (performance.now() > deadline) throw new Error(`${title}: nothing was answered`);
  }
}

interface Reading extends LoadCount {
  readonly at: number;
  readonly cpuMicros: number;
  readonly switches: number;
  readonly databaseMicros: number;
}

async function read(
  load: Child,
  { process, postmaster }: Contestant,
  ask: string,
): Promise<Reading> {
  const [count, own] = await Promise.all([
    load.ask<LoadCount>(ask),
    process.ask<ProcessFigures>("figures"),
  ]);
  const at = performance.now();
  const workers = descendantUsage(process.pid);
  return {
    ...count,
    at,
    cpuMicros: own.cpuMicros + workers.cpuMicros,
    switches: own.switches + workers.switches,
    databaseMicros: postmaster === undefined ? Number.NaN : postgresCpuMicros(postmaster),
  };
}
