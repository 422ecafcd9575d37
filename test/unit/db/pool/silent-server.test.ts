/** A server that keeps connections open and answers nothing (R-MON-7). */
import { Pool, type PoolClient } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isDatabaseLost } from "../../../../src/core/database-lost.ts";
import { openPool } from "../../../../src/db/pool/open-pool.ts";
import { DatabaseServer } from "../../../../src/db/pool/server.ts";
import { watchForSilence } from "../../../../src/db/pool/silent-server.ts";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";

let scratch: TestDatabase;
let proxy: FaultProxy;
const pools: Pool[] = [];
beforeEach(async () => {
  scratch = await createTestDatabase();
  proxy = await startFaultProxy(scratch.url);
});
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
  await proxy.close();
  await scratch.close();
});

function open(max: number, isPipelined = false): Pool {
  const pool = openPool(proxy.url, { max, for: "callers", isPipelined });
  pools.push(pool);
  return pool;
}

/** A pool of two connections that counts the answers to the question. */
function openAsked() {
  const pool = new Pool({ connectionString: scratch.url, max: 2 });
  pools.push(pool);
  const server = new DatabaseServer(scratch.url);
  const seen = { answers: 0 };
  const ask = async (): Promise<void> => {
    await server.ask(5_000);
    seen.answers += 1;
  };
  watchForSilence(pool, { ask });
  return { pool, seen };
}

test.each([
  ["", false],
  [" that are pipelined", true],
])(
  "R-MON-7: statements on connections%s that hang fail within a second, also in transactions, and later ones work",
  async (_, isPipelined) => {
    const pool = open(4, isPipelined);
    const client = await pool.connect();
    await client.query("begin");
    await pool.query("select 1");
    proxy.hang();
    const startMs = performance.now();
    const errors = await Promise.all(
      [client.query("select 2"), pool.query("select 3"), pool.query("select 4")].map((each) =>
        each.catch((reason: unknown) => reason),
      ),
    );
    // The rule is one second; the rest is this machine's own delay.
    expect(performance.now() - startMs).toBeLessThan(3_000);
    expect(errors.map(isDatabaseLost)).toEqual([true, true, true]);
    client.release(true);
    proxy.resume();
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  },
);

test("R-MON-7: requests that wait for connections that hang fail too, and the pool works when the server is back", async () => {
  const pool = open(2);
  const held: PoolClient[] = await Promise.all([pool.connect(), pool.connect()]);
  proxy.hang();
  const error: unknown = await pool.query("select 1").catch((reason: unknown) => reason);
  expect(isDatabaseLost(error)).toBe(true);
  proxy.resume();
  for (const client of held) client.release();
  expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
});

test("R-MON-7: a connection that is never opened keeps no other request from opening one", async () => {
  proxy.neglectNext();
  const pool = open(2);
  const ended: string[] = [];
  const ask = (name: string) =>
    pool.query("select 1").then(
      () => ended.push(`${name} is answered`),
      () => ended.push(`${name} fails`),
    );
  await Promise.all([ask("the first"), ask("the second")]);
  expect(ended).toEqual(["the second is answered", "the first fails"]);
});

test("R-MON-7: requests that wait for a server on which no connection can be opened fail together", async () => {
  const pool = open(2);
  proxy.hang();
  const startMs = performance.now();
  const asked = Array.from({ length: 20 }, () => pool.query("select 1"));
  const results = await Promise.allSettled(asked);
  expect(performance.now() - startMs).toBeLessThan(3_000);
  expect(new Set(results.map(({ status }) => status))).toEqual(new Set(["rejected"]));
});

test("requests behind others on a server that answers wait for their turn", async () => {
  const { pool, seen } = openAsked();
  const held = await Promise.all([pool.connect(), pool.connect()]);
  const waiting = Array.from({ length: 20 }, () => pool.query<{ one: number }>("select 1 as one"));
  // Longer than a lost database may take.
  await expect.poll(() => seen.answers).toBeGreaterThanOrEqual(4);
  for (const client of held) client.release();
  for (const { rows } of await Promise.all(waiting)) expect(rows).toEqual([{ one: 1 }]);
});

test("a statement that takes long on a server that answers is not ended", async () => {
  const { pool, seen } = openAsked();
  const slow = pool.query<{ one: number }>("select 1 as one from pg_sleep(1.5)");
  expect((await slow).rows).toEqual([{ one: 1 }]);
  expect(seen.answers).toBeGreaterThan(0);
});
