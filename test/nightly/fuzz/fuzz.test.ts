/**
 * The short form of `npm run fuzz`: whatever a client sends, no 5xx, no hang, nothing lost, held or
 * left open (R-ERR-7).
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { fuzz } from "./run.ts";
import { startWorld, type World } from "./world.ts";

let database: TestDatabase;
let world: World;
beforeAll(async () => {
  database = await createTestDatabase();
  world = await startWorld(database.url);
});
afterAll(async () => {
  await world?.close();
  await database?.close();
});

it("no request of any entry point breaks the gateway, its log or its ledger", async () => {
  const report = await fuzz(world, { requests: 1_500, seed: 20_261_122, lanes: 24 });
  expect(report.findings).toEqual([]);
  for (const [entry, { ok, refused }] of Object.entries(report.counts)) {
    // Requests that are always refused would prove nothing; bytes without a request always are.
    if (entry !== "raw") expect(ok, `${entry}: requests that passed`).toBeGreaterThan(0);
    expect(refused, `${entry}: requests that were refused`).toBeGreaterThan(0);
  }
}, 120_000);
