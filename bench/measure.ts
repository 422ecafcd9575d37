/** One measurement: a contestant under a load, for a fixed time. */
import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { nextMessage } from "./child.ts";
import type { LoadOptions, Reading } from "./load.ts";
import { runWrk, type WrkResult } from "./native-tools.ts";
import { postgresCpuMicros, usageOf } from "./proc.ts";
import type { Scenario, ScenarioName, VendorName } from "./scenario.ts";

/** A process that answers requests: the bare proxy or a gateway. */
export interface Contestant {
  readonly name: ContestantName;
  readonly pid: number;
  /** Where it listens for requests to a vendor. */
  readonly ports: Readonly<Record<VendorName, number>>;
  /** Empty: it needs none. */
  readonly key: string;
  /** The parent of its PostgreSQL's processes; `undefined`: it has none, or on another machine. */
  readonly postmaster: number | undefined;
  /** Its name of a scenario's model. */
  model(scenario: ScenarioName): string;
}

/** `other` is the gateway of another checkout. */
export type ContestantName = "bare proxy" | "gateway" | "other";

/** The result of one measurement. */
export interface Measurement {
  /** Requests or chunks. */
  readonly perSecond: number;
  /** User and system time of the contestant's processes per request or chunk. */
  readonly cpuMicros: number;
  /** The same of its PostgreSQL; NaN if it has none. */
  readonly databaseMicros: number;
  /** Context switches of the contestant's processes per request or chunk. */
  readonly switches: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The load generators. */
export interface Loads {
  /** `load.ts`. */
  readonly process: ChildProcess;
  /** A folder for wrk's files. */
  readonly folder: string;
}

/** Options of a measurement. */
export interface Turn {
  readonly scenario: Scenario;
  readonly contestant: Contestant;
  /** A whole number. */
  readonly seconds: number;
  /** Seconds of load before the measurement, as a whole number. */
  readonly warmUpSeconds: number;
  /** Whether the contestant may refuse requests (429, 503): no figure counts then. */
  readonly mayRefuse: boolean;
}

/** Time for a contestant to finish its work after a measurement. */
const restMs = 100;

/** Maximum time without an answer. */
const silenceSeconds = 30;

/** @throws Error if a request failed */
export async function measure(loads: Loads, turn: Turn): Promise<Measurement> {
  const { scenario, contestant, mayRefuse } = turn;
  const measured = await (scenario.stream === undefined
    ? measureWrk(loads, turn)
    : measureLoad(loads, turn));
  const { refused, units } = measured;
  if (mayRefuse ? refused === units : refused > 0) {
    throw new Error(`${contestant.name}, ${scenario.title}: ${refused} requests were refused`);
  }
  return measured;
}

/**
 * Sends the requests of a scenario from `load.ts`, which opens all connections before the first
 * request. Under load, Node.js accepts one connection in a turn of its event loop, so hundreds of
 * connections of wrk would wait for seconds.
 *
 * @param rate requests per second at fixed times. Default: a closed loop
 */
export async function measureConnections(
  loads: Loads,
  turn: Turn,
  rate?: number,
): Promise<Counted> {
  return await measureLoad(loads, turn, rate);
}

/** A measurement with the requests that were refused. */
export interface Counted extends Measurement {
  readonly refused: number;
  /** Requests or chunks. */
  readonly units: number;
}

/**
 * Sends JSON requests until a contestant has answered so many: V8 compiles its hot code in this
 * time.
 */
export async function warmUp(
  loads: Loads,
  turn: Omit<Turn, "warmUpSeconds">,
  requests: number,
): Promise<void> {
  for (let answered = 0; answered < requests; ) answered += (await wrk(loads, turn)).requests;
}

async function measureWrk(loads: Loads, turn: Turn): Promise<Counted> {
  if (turn.warmUpSeconds > 0) await wrk(loads, { ...turn, seconds: turn.warmUpSeconds });
  const begun = readUsage(turn.contestant);
  const { requests, refused, micros, p50Micros, p99Micros } = await wrk(loads, turn);
  await sleep(restMs);
  return {
    ...perUnit(begun, readUsage(turn.contestant), requests),
    perSecond: requests / (micros / 1_000_000),
    refused,
    units: requests,
    p50Ms: p50Micros / 1_000,
    p99Ms: p99Micros / 1_000,
  };
}

async function wrk({ folder }: Loads, turn: Omit<Turn, "warmUpSeconds">): Promise<WrkResult> {
  const { scenario, contestant } = turn;
  const { ports, key } = contestant;
  const load = { folder, scenario, key, port: ports[scenario.vendor] };
  const model = contestant.model(scenario.name);
  // At least one request, however slow the machine is.
  for (let { seconds } = turn; ; seconds *= 2) {
    const result = await runWrk({ ...load, model, seconds });
    if (result.requests > 0 && result.failed === 0) return result;
    if (result.failed > 0 || seconds > silenceSeconds) {
      throw new Error(`${contestant.name}, ${scenario.title}: ${JSON.stringify(result)}`);
    }
  }
}

async function measureLoad(loads: Loads, turn: Turn, rate?: number): Promise<Counted> {
  const { scenario, contestant, seconds, warmUpSeconds } = turn;
  const { ports, key } = contestant;
  const options: LoadOptions = {
    scenario,
    key,
    port: ports[scenario.vendor],
    model: contestant.model(scenario.name),
    warmUpMs: warmUpSeconds * 1_000,
    measuredMs: seconds * 1_000,
    ...(rate !== undefined && { rate }),
  };
  loads.process.send(options);
  const from = await nextMessage<Reading>(loads.process);
  const begun = readUsage(contestant);
  const to = await nextMessage<Reading>(loads.process);
  const ended = readUsage(contestant);
  const failure = from.failure || to.failure;
  if (failure !== "") throw new Error(`${contestant.name}, ${scenario.title}: ${failure}`);
  await sleep(restMs);
  const units = to.units - from.units;
  const { p50Ms, p99Ms } = to;
  const perSecond = units / ((ended.atMs - begun.atMs) / 1_000);
  return { ...perUnit(begun, ended, units), perSecond, units, refused: to.refused, p50Ms, p99Ms };
}

interface Usage {
  readonly atMs: number;
  readonly cpuMicros: number;
  readonly switches: number;
  readonly databaseMicros: number;
}

function readUsage({ pid, postmaster }: Contestant): Usage {
  const databaseMicros = postmaster === undefined ? Number.NaN : postgresCpuMicros(postmaster);
  return { ...usageOf(pid), databaseMicros, atMs: performance.now() };
}

function perUnit(
  from: Usage,
  to: Usage,
  units: number,
): Pick<Measurement, "cpuMicros" | "databaseMicros" | "switches"> {
  return {
    cpuMicros: (to.cpuMicros - from.cpuMicros) / units,
    // Ended backends are counted in ticks of 10 ms, living ones in nanoseconds: a short turn may be
    // below 0.
    databaseMicros: Math.max(0, to.databaseMicros - from.databaseMicros) / units,
    switches: (to.switches - from.switches) / units,
  };
}
