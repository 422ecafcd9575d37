/**
 * The short form of `npm run soak -- --memory`: traffic of every kind leaves neither memory nor
 * handles behind.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startWorld, type World } from "../fuzz/world.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";
import { floors, handlesKept, slopeOf, soakMemory } from "./memory.ts";

let database: TestDatabase;
let receiver: Receiver;
let world: World;
beforeAll(async () => {
  database = await createTestDatabase();
  receiver = await startReceiver();
  world = await startWorld(database.url, { flags: ["--max-old-space-size=160"] });
});
afterAll(async () => {
  await world?.close();
  await receiver?.close();
  await database?.close();
});

it("mixed traffic under a small heap leaves heap, handles and listeners as they were", async () => {
  const report = await soakMemory(world, {
    // Half a minute, in which the machine has time for other tests.
    ...{ warmUpSeconds: 12, seconds: 24, everySeconds: 3, seed: 20_261_122 },
    ...{ lanes: 4, pauseMs: 300, warmUpPauseMs: 300 },
    callbackUrl: `${receiver.origin}/hook`,
  });
  expect(report.errors).toEqual([]);
  expect(report.requests).toBeGreaterThan(150);
  // Caches still fill in so short a time: a leak of a request's size with each request is more.
  expect(report.heapGrowth).toBeLessThan(25);
  expect(report.handles.after).toBeLessThanOrEqual(report.handles.before + handlesKept);
  expect(report.listeners.after).toBe(report.listeners.before);
}, 240_000);

it("the floors of measurements are the least of each twelfth, whatever lies above", () => {
  const samples = Array.from({ length: 120 }, (_, at) => ({ at, rss: at % 7 === 0 ? at : 900 }));
  expect(floors(samples).map(({ at }) => at)).toEqual([
    ...[0, 14, 21, 35, 42, 56, 63, 70, 84, 91, 105, 112],
  ]);
  expect(floors([])).toEqual([]);
});

it("the slope of measurements is that of most of them", () => {
  expect(slopeOf([1, 2, 3, 4, 5, 6].map((x) => [x, x === 3 ? 900 : 10 + 2 * x]))).toBe(2);
  expect(slopeOf([[1, 5]])).toBe(0);
});
