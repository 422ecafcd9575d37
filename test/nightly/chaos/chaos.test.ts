/**
 * R-MON-2, R-MON-3, R-MON-7: whatever process dies, nothing that was acknowledged is lost or
 * charged twice, and nothing stays open. The short form of `npm run chaos`: a few random points,
 * and every other kind of fault once.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { type Fault, faults, obstacleOf } from "./fault.ts";
import { createRandom } from "./plan.ts";
import { type Planned, runRounds, type Servers } from "./runs.ts";
import { startFragile } from "./server.ts";
import { isGood, problemsOf, sumUp, tableOf } from "./table.ts";

/** Number of points. */
const pointsMax = 3;

const seed = Date.now() % 1_000_000;

let folder: string;
let servers: Servers;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "uas-chaos-"));
  const fragile = await startFragile(join(folder, "fragile"));
  servers = { steady: [{ ...inject("server"), close: async () => {} }], fragile: [fragile] };
});
afterAll(async () => {
  for (const server of servers?.fragile ?? []) await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function planRounds(): Planned[] {
  const random = createRandom(seed);
  const points = faults.filter(({ kind }) => kind === "point");
  const chosen = Array.from(
    { length: pointsMax },
    () => points.splice(Math.floor(random() * points.length), 1)[0] as Fault,
  );
  const others = faults.filter(
    (fault) => fault.kind !== "point" && obstacleOf(fault) === undefined,
  );
  const round = (fault: Fault, mode: Planned["mode"] = "ledger"): Planned => ({
    mode,
    fault,
    seed: Math.floor(random() * 2 ** 31),
    isFull: false,
  });
  return [
    // Whole gateways take seconds to start: once, the longest round first.
    ...others.map((fault) => round(fault, fault.kind === "random" ? "gateway" : "ledger")),
    ...chosen.map((fault) => round(fault)),
  ];
}

test(`the books are right, whatever dies (seed ${seed})`, { timeout: 300_000 }, async () => {
  const planned = planRounds();
  const first = await runRounds({ rounds: planned, servers, folder, lanes: 4 });
  // On a busy machine a fault can come too late: it gets a second round.
  const late = new Set(sumUp(first).missed);
  const rounds = planned.filter(({ mode, fault }) => late.has(`${mode}: ${fault.name}`));
  const ran = [...first, ...(await runRounds({ rounds, servers, folder, lanes: 1 }))];
  process.stdout.write(`${tableOf(ran)}\n`);
  expect(problemsOf(ran)).toEqual([]);
  const sums = sumUp(ran);
  // A fault that never came proves nothing.
  expect(sums.missed).toEqual([]);
  expect(isGood(sums)).toBe(true);
  // There was something to lose.
  expect(sums.settled).toBeGreaterThan(20);
});
