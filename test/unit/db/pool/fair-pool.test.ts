/** The few connections of a pool, and the many requests of accounts for one. */
import { Client, Pool, type PoolClient } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Caller } from "../../../../src/core/caller.ts";
import { runInAccountContext } from "../../../../src/core/current-account.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { openDatabase } from "../../../../src/db/database.ts";
import { makeFair } from "../../../../src/db/pool/fair-pool.ts";
import { openPool } from "../../../../src/db/pool/open-pool.ts";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";

let scratch: TestDatabase;
const pools: Pool[] = [];
beforeEach(async () => void (scratch = await createTestDatabase()));
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
  await scratch.close();
});

const of = (accountId: string): Caller => ({ kind: "session", accountId });

function open(max: number, users: "callers" | "jobs" = "callers"): Pool {
  const pool = openPool(scratch.url, { max, for: users });
  pools.push(pool);
  return pool;
}

/** A pool of one connection with a separate limit for the wait. */
function openWaiting(waitMs: number): Pool {
  const pool = new Pool({ connectionString: scratch.url, max: 1 });
  pools.push(pool);
  makeFair(pool, waitMs);
  return pool;
}

async function takeAll(pool: Pool, count: number, caller?: Caller): Promise<PoolClient[]> {
  return Promise.all(
    Array.from({ length: count }, () => runInAccountContext(caller, () => pool.connect())),
  );
}

test("requests that were made before a pool was ended are answered", async () => {
  const pool = openPool(scratch.url, { max: 6, for: "callers" });
  const asked = [1, 2, 3].map((each) =>
    pool.query<{ each: number }>("select $1::int as each", [each]),
  );
  await pool.end();
  expect((await Promise.all(asked)).map(({ rows }) => rows[0]?.each)).toEqual([1, 2, 3]);
});

test("connections that break are replaced, and no request loses its turn", async () => {
  const pool = open(2);
  for (let times = 0; times < 6; times++) {
    const [client] = await takeAll(pool, 1);
    await expect(client?.query("select pg_terminate_backend(pg_backend_pid())")).rejects.toThrow();
    client?.release(true);
  }
  const failing = Array.from({ length: 6 }, () => pool.query("select 1 / 0"));
  for (const { status } of await Promise.allSettled(failing)) expect(status).toBe("rejected");
  expect((await Promise.all([1, 2, 3].map(() => pool.query("select 1")))).length).toBe(3);
});

test("an account whose statements all wait leaves connections to others", async () => {
  const pool = open(4);
  const held = await takeAll(pool, 3, of("a"));
  const waiting = runInAccountContext(of("a"), () => pool.query("select 1"));
  const other = await runInAccountContext(of("b"), () => pool.query("select 2 as two"));
  expect(other.rows).toEqual([{ two: 2 }]);
  for (const client of held) client.release();
  await waiting;
});

test("accounts take turns, however many requests of one wait", async () => {
  const pool = open(1);
  const [held] = await takeAll(pool, 1);
  const order: string[] = [];
  const ask = (accountId: string, name: string): Promise<void> =>
    runInAccountContext(of(accountId), async () => {
      await pool.query("select 1");
      order.push(name);
    });
  const asked = ["a1", "a2", "a3", "a4", "b1", "b2"].map((name) => ask(name.charAt(0), name));
  held?.release();
  await Promise.all(asked);
  expect(order).toEqual(["a1", "b1", "a2", "b2", "a3", "a4"]);
});

test("of too many waiting requests the last are refused: 429 for an account's, 503 for those of no account", async () => {
  // Longer than a busy machine takes for a thousand statements.
  const pool = openWaiting(120_000);
  const [held] = await takeAll(pool, 1);
  const ask = (caller?: Caller) => runInAccountContext(caller, () => pool.query("select 1"));
  const waiting = [of("a"), undefined].flatMap((caller) =>
    Array.from({ length: 500 }, () => ask(caller)),
  );
  await expect(ask(of("a"))).rejects.toMatchObject({
    code: ErrorCode.QUEUE_FULL,
    retryAfterSeconds: 1,
  });
  await expect(ask()).rejects.toMatchObject({
    code: ErrorCode.SERVICE_UNAVAILABLE,
    message: expect.stringContaining("busy"),
  });
  const other = ask(of("b"));
  held?.release();
  await Promise.all([...waiting, other]);
});

test("a request that has waited too long gets 503, because the gateway is busy", async () => {
  const pool = openWaiting(200);
  const [held] = await takeAll(pool, 1);
  await expect(pool.query("select 1")).rejects.toMatchObject({
    code: ErrorCode.SERVICE_UNAVAILABLE,
    message: expect.stringContaining("busy"),
    retryAfterSeconds: 1,
  });
  held?.release();
});

test("jobs wait in one queue, however many they are", async () => {
  const pool = open(1, "jobs");
  const [held] = await takeAll(pool, 1);
  const waiting = Array.from({ length: 600 }, () =>
    runInAccountContext(of("a"), () => pool.query("select 1")),
  );
  held?.release();
  expect(await Promise.all(waiting)).toHaveLength(600);
});

test("requests of the ORM wait in the queues of their accounts too", async () => {
  const database = await openDatabase(scratch.url);
  const asked = Array.from({ length: 50 }, (_, index) =>
    runInAccountContext(of(`${index % 3}`), () =>
      database.orm.em.fork().execute("select 1 as one"),
    ),
  );
  for (const rows of await Promise.all(asked)) expect(rows).toEqual([{ one: 1 }]);
  await database.close();
});

test("R-MON-7: a caller whose rows are locked is refused (55P03), and a job waits for them", async () => {
  const [callers, jobs] = [open(2), open(1, "jobs")];
  await callers.query("create table t ()");
  const locker = new Client({ connectionString: scratch.url });
  await locker.connect();
  await locker.query("begin; lock table t in access exclusive mode");
  const job = jobs.query("select from t");
  await expect(callers.query("select from t")).rejects.toMatchObject({ code: "55P03" });
  await locker.end();
  expect((await job).rows).toEqual([]);
  expect((await callers.query("select from t")).rows).toEqual([]);
});
