/**
 * Mixed traffic for any duration, and the gateway's memory, handles and event loop meanwhile. All
 * features take part: whole replies, streams, disconnects, translations, refusals, tasks with
 * webhooks, native APIs, the console, RPCs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayProcess, Measurement } from "../fuzz/gateway-process.ts";
import { createIds } from "../fuzz/ids.ts";
import { Chance } from "../fuzz/random.ts";
import { findEntries, type MakeShot } from "../fuzz/samples.ts";
import { Http1Client } from "../fuzz/send-http1.ts";
import { Http2Client } from "../fuzz/send-http2.ts";
import { writeJson } from "../fuzz/shot.ts";
import type { World } from "../fuzz/world.ts";

/** Options of {@link soakMemory}. */
export interface SoakOptions {
  /** Duration of the measured traffic. */
  readonly seconds: number;
  /**
   * Duration of the traffic before it, which fills caches and lets V8 compile frequent functions.
   */
  readonly warmUpSeconds: number;
  /**
   * Whether V8 compiles after a tenth of the usual number of calls during the warm-up: compiled
   * code grows with the logarithm of the number of requests, for hours at the pace that is
   * measured. Default: false.
   */
  readonly compilesEarly?: boolean;
  readonly seed: number;
  /** Requests at once. */
  readonly lanes: number;
  /** Pause of each client before its next request, after the warm-up. Default: no pause. */
  readonly pauseMs?: number;
  /** The same during the warm-up. Default: not at all. */
  readonly warmUpPauseMs?: number;
  /** Interval between measurements. */
  readonly everySeconds: number;
  /** Receiver of the tasks' webhooks. */
  readonly callbackUrl: string;
  readonly onSample?: (sample: Sample) => void;
}

/** A measurement between requests. */
export interface Sample extends Measurement {
  /** Since the start of the traffic. */
  readonly seconds: number;
  /** Since the same, all that were answered. */
  readonly requests: number;
}

/** Findings of a run. Memory in MB. */
export interface SoakReport {
  readonly requests: number;
  readonly samples: readonly Sample[];
  /** Slope of its {@link floors} after the warm-up. */
  readonly rssSlopePerHour: number;
  /**
   * Growth of the heap from the first to the last measurements after the warm-up, each the least of
   * three.
   */
  readonly heapGrowth: number;
  /** The most of the whole run, also while requests run. */
  readonly rssMax: number;
  /** The highest of all measurements after the warm-up. */
  readonly delayP99Ms: number;
  /** Handles before the traffic, and once all of it has ended. */
  readonly handles: { readonly before: number; readonly after: number };
  /** Listeners of the process, at the end of the warm-up and at the end. */
  readonly listeners: { readonly before: number; readonly after: number };
  /** Lines of the log that are errors. */
  readonly errors: readonly string[];
}

/** Connections that stay after any traffic: pools of the database and of vendors. */
export const handlesKept = 40;

/** Maximum time for connections to close after the traffic. */
const settleMs = 30_000;

/** Runs it. @throws where the gateway ends */
export async function soakMemory(world: World, options: SoakOptions): Promise<SoakReport> {
  const { seconds, warmUpSeconds, seed, lanes, everySeconds } = options;
  const { gateway } = world;
  const makes = await findTraffic(world, options.callbackUrl);
  const before = countHandles(await gateway.measure());
  const startMs = performance.now();
  const pastSeconds = (): number => (performance.now() - startMs) / 1_000;
  const pauses = new Pauses();
  let requests = 0;
  const traffic = new AbortController();
  const lane = async (number: number): Promise<void> => {
    const chance = new Chance(seed + number);
    const [http1, http2] = [new Http1Client(), new Http2Client()];
    while (!traffic.signal.aborted && gateway.exit === undefined) {
      const shot = chance.of(makes)(chance);
      writeJson(shot);
      if (chance.is(0.1)) shot.readMax = chance.below(2_000);
      const address = shot.listener === "public" ? gateway.url : gateway.internalUrl;
      const client = shot.isHttp2 ? http2 : http1;
      await pauses.run(() => client.send(address, shot, 60_000));
      if (++requests % 1_000 === 0) world.vendors.clear();
      const isWarm = pastSeconds() >= warmUpSeconds;
      const pauseMs = (isWarm ? options.pauseMs : options.warmUpPauseMs) ?? 0;
      if (pauseMs > 0) await sleep(pauseMs);
    }
    http1.close();
    http2.close();
  };
  let isCompilingEarly = options.compilesEarly === true;
  if (isCompilingEarly) compileAfter(0.1, gateway);
  const samples: Sample[] = [];
  const running = Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
  try {
    while (pastSeconds() < warmUpSeconds + seconds) {
      await sleep(everySeconds * 1_000);
      const measurement = await pauses.between(() => gateway.measure());
      const sample = { ...measurement, seconds: pastSeconds(), requests };
      samples.push(sample);
      if (isCompilingEarly && sample.seconds > warmUpSeconds) {
        compileAfter(1, gateway);
        isCompilingEarly = false;
      }
      options.onSample?.(sample);
    }
  } finally {
    traffic.abort();
    await running;
  }
  const rssMax = Math.max(gateway.rssMax(), ...samples.map(({ rss }) => rss)) / 1e6;
  const after = await settledHandles(world, before + handlesKept);
  return {
    ...summarize(samples.filter(({ seconds: past }) => past > warmUpSeconds)),
    requests,
    samples,
    rssMax,
    handles: { before, after },
    errors: gateway.errors,
  };
}

/** Number of calls before V8 compiles, by default. */
const compileAsUsual = {
  "invocation-count-for-maglev": 400,
  "invocation-count-for-maglev-osr": 100,
  "invocation-count-for-turbofan": 3_000,
  "invocation-count-for-osr": 500,
  "minimum-invocations-after-ic-update": 500,
};

/** Has V8 compile after a part of the usual number of calls from now on. */
function compileAfter(part: number, gateway: GatewayProcess): void {
  const flags = Object.entries(compileAsUsual).map(([name, calls]) => `--${name}=${calls * part}`);
  gateway.setV8Flags(flags);
}

/**
 * Lets something happen while no request runs: what requests hold while they run is not left
 * behind.
 */
class Pauses {
  #running = 0;
  /** The end of the pause under way. */
  #over: Promise<void> | undefined;
  #onIdle: () => void = () => {};

  /** Runs a request, once no pause is under way. */
  async run(request: () => Promise<unknown>): Promise<void> {
    while (this.#over) await this.#over;
    this.#running++;
    try {
      await request();
    } finally {
      if (--this.#running === 0) this.#onIdle();
    }
  }

  /** Waits for the requests under way, and runs `work` before any other begins. */
  async between<T>(work: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#over = promise;
    try {
      if (this.#running > 0) await new Promise<void>((idle) => (this.#onIdle = idle));
      return await work();
    } finally {
      this.#onIdle = () => {};
      this.#over = undefined;
      resolve();
    }
  }
}

/** Valid requests of every entry point, and tasks with webhooks. Raw bytes are the fuzzer's. */
async function findTraffic(world: World, callbackUrl: string): Promise<readonly MakeShot[]> {
  const { raw: _raw, tasks, ...entries } = await findEntries(world, await createIds(world));
  const withWebhook: MakeShot = (chance) => {
    const shot = (tasks as MakeShot)(chance);
    if (typeof shot.json === "object" && shot.json !== null && !Array.isArray(shot.json)) {
      shot.json = { ...shot.json, callbackUrl };
      delete shot.json["callbackId"];
    }
    return shot;
  };
  return [...Object.values(entries), withWebhook];
}

function countHandles({ handles }: Measurement): number {
  return Object.values(handles).reduce((sum, count) => sum + count, 0);
}

async function settledHandles({ gateway }: World, most: number): Promise<number> {
  for (const end = performance.now() + settleMs; ; await sleep(200)) {
    const count = countHandles(await gateway.measure());
    if (count <= most || performance.now() > end) return count;
  }
}

function summarize(
  samples: readonly Sample[],
): Pick<SoakReport, "rssSlopePerHour" | "heapGrowth" | "delayP99Ms" | "listeners"> {
  const mb = (bytes: number): number => bytes / 1e6;
  const least = (some: readonly Sample[]): number =>
    Math.min(...some.map(({ heapUsed, external }) => heapUsed + external));
  return {
    rssSlopePerHour: slopeOf(floors(samples).map(({ seconds, rss }) => [seconds / 3_600, mb(rss)])),
    heapGrowth: mb(least(samples.slice(-3)) - least(samples.slice(0, 3))),
    delayP99Ms: Math.max(...samples.map(({ delayP99Ms }) => delayP99Ms)),
    listeners: { before: samples[0]?.listeners ?? 0, after: samples.at(-1)?.listeners ?? 0 },
  };
}

/**
 * The least resident memory of each twelfth of the measurements, five minutes of an hour.
 * Measurements themselves differ by 20 to 40 MB, since V8 keeps pages that a collection has freed
 * for a while; what is left behind raises the least of them.
 */
export function floors<Of extends { readonly rss: number }>(samples: readonly Of[]): Of[] {
  const size = Math.max(1, Math.ceil(samples.length / 12));
  const parts = Array.from({ length: Math.ceil(samples.length / size) }, (_, part) =>
    samples.slice(part * size, (part + 1) * size),
  );
  return parts.map((part) =>
    part.reduce((least, sample) => (sample.rss < least.rss ? sample : least)),
  );
}

/** The median slope of all pairs (Theil and Sen): single measurements far off do not count. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const slopes = points
    .flatMap(([x, y], at) => points.slice(at + 1).map(([x2, y2]) => (y2 - y) / (x2 - x)))
    .toSorted((one, other) => one - other);
  return slopes[slopes.length >> 1] ?? 0;
}
