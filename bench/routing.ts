/** Routing and limits over three processes: each figure beside what is required of it. */
import { setTimeout as sleep } from "node:timers/promises";
import { completes, refuses } from "../test/support/routing-vendor.ts";
import { type Place, withCleanup } from "./contestants.ts";
import type { BenchOptions } from "./options.ts";
import { print } from "./report.ts";
import {
  type Ask,
  cooldownMs,
  firstByteMs,
  gatewayCount,
  type Message,
  type Reply,
  RoutingWorld,
  silentModels,
  weights,
} from "./routing-world.ts";
import { median } from "./statistics.ts";

/** How much is measured. */
export interface RoutingScale {
  /** Requests against a limit of {@link requestLimit} per minute. */
  readonly requests: number;
  /** The limit of tokens per minute that is used up. */
  readonly tokens: number;
  /** Calls that are shared by weight. */
  readonly calls: number;
  readonly conversations: number;
  /** Pairs of calls whose times are compared. */
  readonly pairs: number;
  /** How long a dead vendor's probes are counted, and how long a credential works that is revoked then. */
  readonly watchMs: number;
  /** Whether a missed figure fails the bench. */
  readonly isStrict: boolean;
}

/** A figure beside what is required of it. */
interface Figure {
  readonly title: string;
  readonly measured: string;
  readonly required: string;
  readonly isMet: boolean;
}

type Measure = (world: RoutingWorld, scale: RoutingScale) => Promise<readonly Figure[]>;

/** Measures and prints everything. Returns whether all figures are met. */
export async function benchRouting(
  { routing: scale }: Pick<BenchOptions, "routing">,
  place: Place,
): Promise<boolean> {
  return await withCleanup(place.cleanup, async (cleanup) => {
    const world = await RoutingWorld.start({ ...place, cleanup });
    print(`Routing and limits over ${gatewayCount} processes`);
    let isMet = true;
    for (const measure of measures) {
      for (const figure of await measure(world, scale)) {
        const verdict = figure.isMet ? "ok" : "MISSED";
        print(
          `  ${figure.title.padEnd(66)}${figure.measured.padStart(22)}   ${figure.required} ${verdict}`,
        );
        isMet &&= figure.isMet;
      }
      world.forget();
    }
    print();
    return isMet || !scale.isStrict;
  });
}

const connections = 48;

/** Requests per minute. */
const requestLimit = 100;

async function limitRequests(
  world: RoutingWorld,
  { requests }: RoutingScale,
): Promise<readonly Figure[]> {
  const key = await world.createKey({ rpm: requestLimit });
  const replies = await askAll(world, requests, () => ({ key, model: "direct" }));
  const served = replies.filter(({ status }) => status === 200).length;
  const refused = replies.filter(({ status }) => status === 429).length;
  return [
    {
      title: `${count(requests)} requests against a limit of ${requestLimit}: served`,
      measured: count(served),
      required: `exactly ${requestLimit}`,
      isMet: served === requestLimit && served + refused === requests,
    },
  ];
}

/** What a call of the vendor uses. */
const callTokens = 15;

async function limitTokens(
  world: RoutingWorld,
  { tokens }: RoutingScale,
): Promise<readonly Figure[]> {
  const key = await world.createKey({ tpm: tokens });
  const begun = performance.now();
  let used = 0;
  for (let isFull = false; !isFull; ) {
    const replies = await askAll(world, 300, () => ({ key, model: "direct" }));
    const served = replies.filter(({ status }) => status === 200).length;
    used += served * callTokens;
    // Calls that end while others are refused give tokens back: only a lonely call shows that nothing is left.
    await sleep(settleMs);
    const last = await world.ask({ gateway: 0, key, model: "direct" });
    if (last.status === 200) used += callTokens;
    isFull = last.status === 429;
  }
  const share = (100 * used) / tokens;
  const seconds = (performance.now() - begun) / 1_000;
  return [
    {
      title: `tokens used of ${count(tokens)} per minute, within ${seconds.toFixed(0)} s`,
      measured: `${share.toFixed(2)} %`,
      required: "99 to 100 %",
      isMet: share >= 99 && share <= 100 && seconds < 60,
    },
  ];
}

/** How long the return of unused tokens may take, in milliseconds. */
const settleMs = 300;

const limitedKey = { rpm: 1_000_000, tpm: 1_000_000_000, concurrency: 1_000 };

async function addByLimits(
  world: RoutingWorld,
  { pairs }: RoutingScale,
): Promise<readonly Figure[]> {
  const free = { gateway: 0, key: await world.createKey(), model: "direct" };
  const limited = { ...free, key: await world.createKey(limitedKey) };
  const difference = await compare(world, { pairs, asks: [free, limited] });
  return [added("limits of a key (rpm, tpm and concurrency) add at p50", difference, 1)];
}

async function leaveDeadVendor(
  world: RoutingWorld,
  { pairs, watchMs }: RoutingScale,
): Promise<readonly Figure[]> {
  const { dead } = world.vendors;
  const timesMs: number[] = [];
  dead.answer = ({ response }) => {
    timesMs.push(performance.now());
    response.socket?.destroy();
  };
  const key = await world.createKey();
  const ask = { gateway: 0, key, model: "dead-first" };
  while (!(await world.isOpen("dead"))) await world.ask(ask);
  const openedAtMs = performance.now();
  const difference = await compare(world, { pairs, asks: [{ ...ask, model: "direct" }, ask] });
  let failed = 0;
  while (performance.now() < openedAtMs + watchMs) {
    // One gateway: each has a breaker of its own.
    const replies = await Promise.all(Array.from({ length: 48 }, () => world.ask(ask)));
    failed += replies.filter(({ status }) => status !== 200).length;
  }
  const all = timesMs.filter((atMs) => atMs > openedAtMs);
  const gaps = all.slice(1).map((atMs, index) => atMs - (all[index] ?? atMs));
  const least = Math.min(...gaps) / cooldownMs;
  return [
    added("a dead first vendor with an open breaker adds at p50", difference, 1),
    {
      title: `least time between two of its ${all.length} probes, in cooldowns`,
      measured: gaps.length === 0 ? "none" : least.toFixed(2),
      // The jitter of a pause.
      required: "at least 0.8, no customer errors",
      isMet: gaps.length > 0 && least >= 0.8 && failed === 0,
    },
  ];
}

async function shareByWeight(
  world: RoutingWorld,
  { calls }: RoutingScale,
): Promise<readonly Figure[]> {
  const key = await world.createKey();
  // Equal calls of a key would be one conversation.
  await askAll(world, calls, (at) => ({
    key,
    model: "weighted",
    messages: [{ role: "user", content: `Call ${at}` }],
  }));
  const { requests } = world.vendors.main;
  const shares = weights.map(
    (weight) =>
      (100 * requests.filter(({ model }) => model === `share-${weight}`).length) / requests.length,
  );
  const isMet = weights.every((weight, index) => Math.abs((shares[index] ?? 0) - weight) <= 2);
  return [
    {
      title: `${count(calls)} calls by weights ${weights.join("/")}`,
      measured: shares.map((share) => share.toFixed(1)).join("/"),
      required: "± 2 percentage points",
      isMet,
    },
  ];
}

const turns = 10;

/** How long a customer takes for the next message at least, in milliseconds. */
const turnPauseMs = 250;

async function keepConversations(
  world: RoutingWorld,
  { conversations }: RoutingScale,
): Promise<readonly Figure[]> {
  const key = await world.createKey();
  const chats = Array.from({ length: conversations }, (_, at): Message[] => [
    { role: "user", content: `Conversation ${at}` },
  ]);
  for (let turn = 0; turn < turns; turn++) {
    await askAll(world, conversations, (at) => ({
      key,
      model: "chat",
      messages: [...(chats[at] ?? [])],
      // Another process each turn.
      gateway: (at + turn) % gatewayCount,
    }));
    for (const chat of chats) {
      chat.push({ role: "assistant", content: "Hello" });
      chat.push({ role: "user", content: `And ${turn}?` });
    }
    await sleep(turnPauseMs);
  }
  const vendor = world.vendors.three;
  const { requests } = vendor;
  const last = new Map<string, string>();
  let stayed = 0;
  let followed = 0;
  for (const { key: credential, body } of requests) {
    const [first] = body["messages"] as readonly Message[];
    const id = first?.content ?? "";
    const before = last.get(id);
    last.set(id, credential);
    if (before === undefined) continue;
    followed++;
    if (before === credential) stayed++;
  }
  const share = (100 * stayed) / followed;
  const used = Object.keys(vendor.countByKey()).length;
  return [
    {
      title: `${count(conversations)} conversations of ${turns} turns over ${used} credentials: stay`,
      measured: `${share.toFixed(2)} %`,
      required: "at least 99 %, of 3 credentials",
      isMet: share >= 99 && used === 3 && followed === conversations * (turns - 1),
    },
  ];
}

async function revokeCredential(
  world: RoutingWorld,
  { watchMs }: RoutingScale,
): Promise<readonly Figure[]> {
  const key = await world.createKey();
  const { revoked } = world.vendors;
  const revokedAtMs = performance.now() + watchMs / 4;
  revoked.answer = (request) => {
    const isRevoked = request.key === "b" && performance.now() > revokedAtMs;
    (isRevoked ? refuses(401) : completes)(request);
  };
  const endMs = performance.now() + watchMs / 2;
  const statuses: number[] = [];
  while (performance.now() < endMs) {
    const replies = await askAll(world, 300, (at) => ({
      key,
      model: "revoked",
      stream: at % 2 === 0,
    }));
    statuses.push(...replies.map(({ status }) => status));
  }
  const failed = statuses.filter((status) => status !== 200).length;
  return [
    {
      title: `a credential revoked during ${count(statuses.length)} calls: customer errors`,
      measured: count(failed),
      required: "none",
      isMet: failed === 0,
    },
  ];
}

async function leaveSilentVendor(world: RoutingWorld): Promise<readonly Figure[]> {
  const key = await world.createKey();
  world.vendors.silent.answer = () => {};
  const replies = await Promise.all(
    silentModels.map((model, at) =>
      world.ask({ gateway: at % gatewayCount, key, model, stream: at % 2 === 0 }),
    ),
  );
  const slowest = Math.max(...replies.map(({ ms }) => ms)) - firstByteMs;
  return [
    {
      title: "a silent vendor: answered after first_byte and at most",
      measured: `${slowest.toFixed(0)} ms`,
      required: "500 ms",
      isMet: slowest <= 500 && replies.every(({ status }) => status === 200),
    },
  ];
}

const measures: readonly Measure[] = [
  limitRequests,
  limitTokens,
  addByLimits,
  leaveDeadVendor,
  shareByWeight,
  keepConversations,
  revokeCredential,
  leaveSilentVendor,
];

/** Asks as often, over {@link connections} at once; the gateways take turns where a call does not name one. */
async function askAll(
  world: RoutingWorld,
  total: number,
  askOf: (at: number) => Omit<Ask, "gateway"> & { readonly gateway?: number },
): Promise<readonly Reply[]> {
  const replies: Reply[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (let at = next++; at < total; at = next++) {
        replies.push(await world.ask({ gateway: at % gatewayCount, ...askOf(at) }));
      }
    }),
  );
  return replies;
}

interface Comparison {
  readonly pairs: number;
  /** Two kinds of calls: what the second takes more is measured. */
  readonly asks: readonly [Ask, Ask];
}

/** Median times in milliseconds: of the first kind of calls, and what the second takes more. */
interface Difference {
  readonly baseMs: number;
  readonly addedMs: number;
}

/** Sends both kinds of calls in turns, one at a time. */
async function compare(world: RoutingWorld, { pairs, asks }: Comparison): Promise<Difference> {
  const times: readonly [number[], number[]] = [[], []];
  for (let pair = -pairs / 4; pair < pairs; pair++) {
    for (const index of [0, 1] as const) {
      const { status, ms, body } = await world.ask(asks[index]);
      if (status !== 200) throw new Error(`${asks[index].model}: ${status} ${body}`);
      // The first ones warm both up.
      if (pair >= 0) times[index].push(ms);
    }
  }
  const baseMs = median(times[0]);
  return { baseMs, addedMs: median(times[1]) - baseMs };
}

function added(title: string, { baseMs, addedMs }: Difference, requiredMs: number): Figure {
  return {
    title,
    measured: `${addedMs.toFixed(2)} ms to ${baseMs.toFixed(2)}`,
    required: `at most ${requiredMs} ms`,
    isMet: addedMs <= requiredMs,
  };
}

function count(value: number): string {
  return value.toLocaleString("en");
}
