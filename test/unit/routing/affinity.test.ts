/** Conversations stay with their credential, in all processes. */
import { Pool } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { VendorConfig } from "../../../src/config/config.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { Affinity, AffinityShare } from "../../../src/routing/affinity.ts";
import { Targets } from "../../../src/routing/targets.ts";
import type { Vendor } from "../../../src/provider/vendor.ts";
import { createTestDatabase } from "../../support/database.ts";

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 2 });
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

const credential = (name: string) => ({ name, apiKey: name, weight: 1, priority: 0 });
const place = { vendor: "v", model: "m" };

async function process() {
  const log = pino({ level: "silent" });
  const credentials = [credential("a"), credential("b"), credential("c")];
  const config = { name: "v", credentials } as unknown as VendorConfig;
  const client = { name: "v" } as unknown as Vendor;
  const clients = [client, client, client] as const;
  const vendors = new Map([["v", { config, clients }]]);
  const targets = new Targets({ vendors, metrics: createMetrics(), log });
  let nowMs = 0;
  const affinity = new Affinity(() => nowMs);
  const share = new AffinityShare({ pool, url: database.url, affinity, targets, log });
  await share.start();
  onTestFinished(() => share.stop());
  const route = targets.named(place);
  if (route === undefined) throw new Error("no route");
  return { affinity, route, pass: (ms: number) => (nowMs += ms) };
}

type Process = Awaited<ReturnType<typeof process>>;

const bind = ({ affinity, route }: Process, key: string, at: number): void => {
  const found = route.owner.credentials[at];
  if (found !== undefined) affinity.bind(key, route, found);
};
const where = ({ affinity }: Process, key: string) => affinity.find(key)?.credential.credential;

it("1,000 conversations that begin in one process are known to the others, and so is where one moves", async () => {
  const [first, second, third] = [await process(), await process(), await process()];
  const keys = Array.from({ length: 1_000 }, (_, index) => `${"k".repeat(23)}${index + 1_000}`);
  keys.forEach((key, index) => bind(first, key, index % 3));
  for (const other of [second, third]) {
    await expect.poll(() => other.affinity.size).toBe(1_000);
    const same = keys.filter((key) => where(other, key) === where(first, key));
    expect(same).toHaveLength(1_000);
  }
  const [moved = ""] = keys;
  bind(second, moved, 2);
  await expect.poll(() => [where(first, moved), where(third, moved)]).toEqual(["c", "c"]);
});

it("a conversation is forgotten an hour after its last request, and is told again while it goes on", async () => {
  const [first, second] = [await process(), await process()];
  bind(first, "long", 1);
  await expect.poll(() => where(second, "long")).toBe("b");
  const minutes = 40;
  for (const each of [first, second]) each.pass(minutes * 60_000);
  bind(first, "long", 1);
  bind(first, "mark", 0);
  await expect.poll(() => where(second, "mark")).toBe("a");
  for (const each of [first, second]) each.pass(minutes * 60_000);
  expect([where(first, "long"), where(second, "long")]).toEqual(["b", "b"]);
  for (const each of [first, second]) each.pass(minutes * 60_000);
  expect([where(first, "long"), where(second, "long")]).toEqual([undefined, undefined]);
});
