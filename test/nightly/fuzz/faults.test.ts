/**
 * The short form of `npm run fuzz -- --faults`: whatever happens to vendors' replies, each call
 * ends and is charged right.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { proxiedVendors } from "./fault-flows.ts";
import { faultMembers, runFaults } from "./faults.ts";
import { openVendorProxies, type VendorProxies } from "./vendor-proxy.ts";
import { startWorld, type World } from "./world.ts";

let database: TestDatabase;
let proxies: VendorProxies;
let world: World;
beforeAll(async () => {
  database = await createTestDatabase();
  proxies = await openVendorProxies(proxiedVendors);
  const { addressOf } = proxies;
  world = await startWorld(database.url, { addressOf, vendorMembers: faultMembers });
});
afterAll(async () => {
  await world?.close();
  await proxies?.close();
  await database?.close();
});

it("replies that are delayed, cut, doubled, corrupted, dripped or compressed end as their class says", async () => {
  const { calls, classes, findings } = await runFaults(world, proxies, {
    ...{ calls: 300, seed: 20_261_122, lanes: 64 },
  });
  expect(findings).toEqual([]);
  expect(calls).toBe(300);
  for (const outcome of ["same", "again", "failed", "lost", "refused", "broken", "any"]) {
    expect(classes[outcome], outcome).toBeGreaterThan(0);
  }
}, 180_000);
