import { pino } from "pino";
import { Pool } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { VendorConfig } from "../../../src/config/config.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { latencyPercentile } from "../../../src/routing/breaker.ts";
import { HealthStore, readHealth } from "../../../src/routing/health-store.ts";
import { Targets } from "../../../src/routing/targets.ts";
import { vendorKinds } from "../../../src/provider/index.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 4 });
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

const log = pino({ level: "silent" });
const config: VendorConfig = {
  ...{ name: "v", kind: "openai-compatible", baseUrl: "http://127.0.0.1:1", apiKey: undefined },
  ...{ dialects: undefined, maxInFlight: undefined, pollsPerSecond: undefined },
  ...{ onDisconnect: "grace", nativePrefix: undefined, runBaseUrl: undefined },
  timeouts: { connectMs: 1_000, firstByteMs: 1_000, idleMs: 1_000 },
  credentials: [{ name: "A", apiKey: "sk-a", weight: 1, priority: 0 }],
};

/** The targets of one process, with shared breakers. */
async function openProcess(): Promise<Targets> {
  const client = vendorKinds["openai-compatible"]?.create(config);
  if (client === undefined) throw new Error("no kind openai-compatible");
  const vendors = new Map([["v", { config, clients: [client] as const }]]);
  const { url } = database;
  const targets = new Targets({ vendors, metrics: createMetrics(), log, shared: { pool, url } });
  onTestFinished(async () => {
    await targets.stop();
    await client.close();
  });
  await targets.start();
  return targets;
}

const route = { vendor: "v", model: "m" };

/** The route of a process. */
function routeOf(targets: Targets) {
  const target = targets.of(route);
  if (target === undefined) throw new Error("the vendor is not open");
  return target;
}

it("a breaker that opens in one process is open in all, and gives them one probe for each cooldown (R-RTE-1)", async () => {
  const processes = await Promise.all([openProcess(), openProcess(), openProcess()]);
  const [first] = processes;
  if (first === undefined) throw new Error("no process");
  first.failed(routeOf(first), "model");
  for (const each of processes) {
    await expect.poll(() => routeOf(each).breaker.open?.failure).toBe("model");
  }
  const claimAll = () => Promise.all(processes.map((each) => each.claimProbe(routeOf(each))));
  expect(await claimAll()).toEqual([false, false, false]);
  await pool.query("update breaker set probe_time = now()");
  expect((await claimAll()).filter((isGranted) => isGranted)).toHaveLength(1);
  expect(await claimAll()).toEqual([false, false, false]);
  const { rows } = await pool.query<{ cooldown_ms: number }>("select cooldown_ms from breaker");
  expect(rows).toEqual([{ cooldown_ms: 20_000 }]);
  first.succeeded(routeOf(first), first.clock());
  for (const each of processes) {
    await expect.poll(() => routeOf(each).breaker.open).toBeUndefined();
  }
});

it("vendor health adds up the attempts of all processes, and survives them (R-RTE-3)", async () => {
  for (const outcomes of [[10, 20, "status 503"], [40]]) {
    const targets = await openProcess();
    const store = new HealthStore({ pool, clock: systemClock, targets, log });
    const { health } = routeOf(targets);
    for (const each of outcomes) {
      if (typeof each === "number") health.answered(each);
      else health.failed(each);
    }
    await store.stop();
  }
  const [found] = (await readHealth(pool)).filter(({ model }) => model === "m");
  expect(found).toMatchObject({
    counts: { attempts: 4, failures: 1 },
    failure: { what: "status 503" },
    inFlight: 0,
  });
  if (found === undefined) throw new Error("no health");
  expect(latencyPercentile(found.counts, 0.5)).toBe(23);
  expect(latencyPercentile(found.counts, 0.95)).toBe(51);
});

it("calls in flight stay in the health of their route for as long as they take (R-RTE-3)", async () => {
  const targets = await openProcess();
  const store = new HealthStore({ pool, clock: systemClock, targets, log });
  const long = targets.of({ vendor: "v", model: "long" });
  if (long === undefined) throw new Error("the vendor is not open");
  long.inFlight = 2;
  await store.start();
  onTestFinished(() => store.stop());
  const inFlight = async () =>
    (await readHealth(pool)).find(({ model }) => model === "long")?.inFlight;
  await expect.poll(inFlight, { timeout: 30_000 }).toBe(2);
  // As if ten seconds had passed since.
  await pool.query("update route_health set update_time = now() - interval '11 seconds'");
  await expect.poll(inFlight, { timeout: 30_000 }).toBe(2);
  long.inFlight = 0;
  await expect.poll(inFlight, { timeout: 30_000 }).toBe(0);
});

it("the metric of a breaker says when its pause is over (R-RTE-1)", async () => {
  const metrics = createMetrics();
  let nowMs = 0;
  const client = vendorKinds["openai-compatible"]?.create(config);
  if (client === undefined) throw new Error("no kind openai-compatible");
  onTestFinished(() => client.close());
  const vendors = new Map([["v", { config, clients: [client] as const }]]);
  const targets = new Targets({ vendors, metrics, log, clock: () => nowMs });
  const shown = async () => {
    targets.showPauses();
    const { values } = await metrics.breakerState.get();
    return values.find(({ labels }) => labels.model === "m")?.value;
  };
  expect([routeOf(targets).breaker.open, await shown()]).toEqual([undefined, 0]);
  targets.failed(routeOf(targets), "model");
  expect(await shown()).toBe(2);
  nowMs = 60_000;
  expect(await shown()).toBe(1);
});
