/**
 * Mixed traffic for as long as one likes, and what memory, handles and the event loop of the gateway do meanwhile. All
 * features take part: whole replies, streams, disconnects, translations, refusals, tasks with webhooks, native APIs,
 * the console, RPCs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Measurement } from "../fuzz/gateway-process.ts";
import { createIds } from "../fuzz/ids.ts";
import { Chance } from "../fuzz/random.ts";
import { findEntries, type MakeShot } from "../fuzz/samples.ts";
import { Http1Client } from "../fuzz/send-http1.ts";
import { Http2Client } from "../fuzz/send-http2.ts";
import { writeJson } from "../fuzz/shot.ts";
import type { World } from "../fuzz/world.ts";

/** Options of {@link soakMemory}. */
export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Requests at once. */
  readonly lanes: number;
  /** How long each of them waits before the next one, in milliseconds. Default: not at all. */
  readonly pauseMs?: number;
  /** How often is measured, in seconds. The first third of the measurements is warm-up. */
  readonly everySeconds: number;
  /** Where tasks send their webhooks. */
  readonly callbackUrl: string;
  readonly onSample?: (sample: Sample) => void;
}

/** A measurement and its time since the start. */
export interface Sample extends Measurement {
  readonly seconds: number;
}

/** What a run found. Memory in MB. */
export interface SoakReport {
  readonly requests: number;
  readonly samples: readonly Sample[];
  readonly rssSlopePerHour: number;
  /** Growth of the heap from the first to the last measurements after the warm-up, each the least of three. */
  readonly heapGrowth: number;
  readonly rssMax: number;
  /** The highest of all measurements after the warm-up, in milliseconds. */
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

/** How long connections may take to be closed after the traffic, in milliseconds. */
const settleMs = 30_000;

/** Runs it. @throws where the gateway ends */
export async function soakMemory(world: World, options: SoakOptions): Promise<SoakReport> {
  const { seconds, everySeconds, lanes, seed, pauseMs = 0 } = options;
  const { gateway } = world;
  const makes = await findTraffic(world, options.callbackUrl);
  const before = countHandles(await gateway.measure());
  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  let requests = 0;
  const lane = async (number: number): Promise<void> => {
    const chance = new Chance(seed + number);
    const [http1, http2] = [new Http1Client(), new Http2Client()];
    while (performance.now() < endMs && gateway.exit === undefined) {
      const shot = chance.of(makes)(chance);
      writeJson(shot);
      if (chance.is(0.1)) shot.readMax = chance.below(2_000);
      const address = shot.listener === "public" ? gateway.url : gateway.internalUrl;
      await (shot.isHttp2 ? http2 : http1).send(address, shot, 60_000);
      if (++requests % 1_000 === 0) world.vendors.clear();
      if (pauseMs > 0) await sleep(pauseMs);
    }
    http1.close();
    http2.close();
  };
  const samples: Sample[] = [];
  const traffic = Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
  while (performance.now() < endMs - everySeconds * 500) {
    await sleep(everySeconds * 1_000);
    const sample = {
      ...(await gateway.measure()),
      seconds: (performance.now() - startMs) / 1_000,
    };
    samples.push(sample);
    options.onSample?.(sample);
  }
  await traffic;
  const after = await settledHandles(world, before + handlesKept);
  return {
    ...summarize(samples),
    requests,
    samples,
    handles: { before, after },
    errors: gateway.errors,
  };
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
): Pick<SoakReport, "rssSlopePerHour" | "heapGrowth" | "rssMax" | "delayP99Ms" | "listeners"> {
  const warm = samples.slice(Math.ceil(samples.length / 3));
  const mb = (bytes: number): number => bytes / 1e6;
  const least = (some: readonly Sample[]): number =>
    Math.min(...some.map(({ heapUsed, external }) => heapUsed + external));
  return {
    rssSlopePerHour: slopeOf(warm.map(({ seconds, rss }) => [seconds / 3_600, mb(rss)])),
    heapGrowth: mb(least(warm.slice(-3)) - least(warm.slice(0, 3))),
    rssMax: mb(Math.max(...samples.map(({ rss }) => rss))),
    delayP99Ms: Math.max(...warm.map(({ delayP99Ms }) => delayP99Ms)),
    listeners: { before: warm[0]?.listeners ?? 0, after: warm.at(-1)?.listeners ?? 0 },
  };
}

/** The median slope of all pairs (Theil and Sen): single measurements far off do not count. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const slopes = points
    .flatMap(([x, y], at) => points.slice(at + 1).map(([x2, y2]) => (y2 - y) / (x2 - x)))
    .toSorted((one, other) => one - other);
  return slopes[slopes.length >> 1] ?? 0;
}
