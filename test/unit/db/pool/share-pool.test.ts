/** The few connections of a pool, and many who want one. */
import { Client, DatabaseError, Pool, type PoolClient } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Caller, runInAccountContext } from "../../../../src/core/caller.ts";
import { isDatabaseLost } from "../../../../src/core/database-lost.ts";
import { openDatabase } from "../../../../src/db/database.ts";
import { guardPool, openPool } from "../../../../src/db/pool/open-pool.ts";
import { DatabaseServer, toServer } from "../../../../src/db/pool/server.ts";
import { probeServer, sharePool, whileAnswering } from "../../../../src/db/pool/share-pool.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";

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

/** One whose probes are counted. */
function openProbed(max: number, waitMs?: number) {
  const pool = new Pool({ connectionString: scratch.url, max });
  guardPool(pool);
  pools.push(pool);
  const seen = { probes: 0 };
  const ask = probeServer(toServer(scratch.url));
  const probe = async (timeoutMs: number): Promise<void> => {
    await ask(timeoutMs);
    seen.probes += 1;
  };
  sharePool(pool, { for: "callers", probe, ...(waitMs !== undefined && { waitMs }) });
  return { pool, seen };
}

async function takeAll(pool: Pool, count: number, caller?: Caller): Promise<PoolClient[]> {
  return Promise.all(
    Array.from({ length: count }, () => runInAccountContext(caller, () => pool.connect())),
  );
}

test("a connection that comes back soon is taken instead of opening another, and one that does not is not waited for", async () => {
  const pool = open(2);
  const first = await pool.connect();
  const next = pool.connect();
  first.release();
  expect(await next).toBe(first);
  expect(pool.totalCount).toBe(1);
  const other = await pool.connect();
  expect(other).not.toBe(first);
  for (const client of [first, other]) client.release();
});

test("R-MON-7: who waits behind others on a database that is there is not told that it is lost", async () => {
  const { pool, seen } = openProbed(2);
  const held = await takeAll(pool, 2);
  const waiting = Array.from({ length: 20 }, () => pool.query<{ one: number }>("select 1 as one"));
  // Longer than a lost database may take.
  await expect.poll(() => seen.probes).toBeGreaterThanOrEqual(4);
  for (const client of held) client.release();
  for (const { rows } of await Promise.all(waiting)) expect(rows).toEqual([{ one: 1 }]);
});

test("R-MON-7: who waits behind connections that hang is told so, and the pool works on when they are back", async () => {
  const proxy = await startFaultProxy(scratch.url);
  const pool = openPool(proxy.url, { max: 2, for: "callers" });
  const held = await takeAll(pool, 2);
  proxy.hang();
  const error: unknown = await pool.query("select 1").catch((reason: unknown) => reason);
  expect(isDatabaseLost(error)).toBe(true);
  proxy.resume();
  for (const client of held) client.release();
  expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  await pool.end();
  await proxy.close();
});

test("what was asked before a pool was ended is answered", async () => {
  const pool = openPool(scratch.url, { max: 6, for: "jobs" });
  const asked = [1, 2, 3].map((each) =>
    pool.query<{ each: number }>("select $1::int as each", [each]),
  );
  await pool.end();
  expect((await Promise.all(asked)).map(({ rows }) => rows[0]?.each)).toEqual([1, 2, 3]);
});

test("R-MON-7: a connection that is never opened keeps nobody else from opening one", async () => {
  const proxy = await startFaultProxy(scratch.url);
  proxy.neglectNext();
  const pool = openPool(proxy.url, { max: 2, for: "callers" });
  const ended: string[] = [];
  const ask = (name: string) =>
    pool.query("select 1").then(
      () => ended.push(`${name} is answered`),
      () => ended.push(`${name} fails`),
    );
  await Promise.all([ask("the first"), ask("the second")]);
  expect(ended).toEqual(["the second is answered", "the first fails"]);
  await pool.end();
  await proxy.close();
});

test.each([
  ["", false],
  [" that are pipelined", true],
])(
  "R-MON-7: statements on connections%s that hang fail within a second, of callers and in transactions, and later ones work",
  async (_, isPipelined) => {
    const proxy = await startFaultProxy(scratch.url);
    const pool = openPool(proxy.url, { max: 4, for: "callers", isPipelined });
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
    expect(performance.now() - startMs).toBeLessThan(3_000);
    expect(errors.map(isDatabaseLost)).toEqual([true, true, true]);
    client.release(true);
    proxy.resume();
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    await pool.end();
    await proxy.close();
  },
);

/** Keeps the event loop from running, as loading and compiling a program does. */
function blockLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test("connections come about although the event loop is blocked for longer than they may take", async () => {
  const database = await openDatabase(scratch.url);
  const statements = [
    database.pool.query("select 1"),
    database.orm.em.fork().execute("select 1"),
    probeServer(toServer(scratch.url))(600),
  ];
  // Connecting, logging in and asking are several turns of the loop, each of which is late.
  for (let turn = 0; turn < 4; turn++) {
    blockLoop(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const results = await Promise.allSettled(statements);
  await database.close();
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
});

test("a statement that takes long on a server that lives is not ended", async () => {
  const { pool, seen } = openProbed(2);
  const slow = pool.query<{ one: number }>("select 1 as one from pg_sleep(1.5)");
  expect((await slow).rows).toEqual([{ one: 1 }]);
  expect(seen.probes).toBeGreaterThan(0);
});

test("connections that break are replaced, and cost nobody a place", async () => {
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

test("of too many who wait the last are told to come again, of an account and of nobody", async () => {
  // Longer than a busy machine takes for a thousand statements.
  const { pool } = openProbed(1, 120_000);
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

test("who has waited too long is told that the gateway is busy", async () => {
  const { pool } = openProbed(1, 200);
  const [held] = await takeAll(pool, 1);
  await expect(pool.query("select 1")).rejects.toMatchObject({
    code: ErrorCode.SERVICE_UNAVAILABLE,
    message: expect.stringContaining("busy"),
    retryAfterSeconds: 1,
  });
  held?.release();
});

test("jobs wait in one line, however many they are", async () => {
  const pool = open(1, "jobs");
  const [held] = await takeAll(pool, 1);
  const waiting = Array.from({ length: 600 }, () =>
    runInAccountContext(of("a"), () => pool.query("select 1")),
  );
  held?.release();
  expect(await Promise.all(waiting)).toHaveLength(600);
});

test("the ORM waits in turns, too", async () => {
  const database = await openDatabase(scratch.url);
  const asked = Array.from({ length: 50 }, (_, index) =>
    runInAccountContext(of(`${index % 3}`), () =>
      database.orm.em.fork().execute("select 1 as one"),
    ),
  );
  for (const rows of await Promise.all(asked)) expect(rows).toEqual([{ one: 1 }]);
  await database.close();
});

test("R-MON-7: work of several statements is refused once the server has answered nobody for a time, and its end is told", async () => {
  const pool = open(2);
  const result = Promise.withResolvers<string>();
  const late = Promise.withResolvers<string>();
  let isRefused = (): boolean => false;
  const work = whileAnswering(
    pool,
    50,
    (asks) => {
      isRefused = asks;
      return result.promise;
    },
    late.resolve,
  );
  await expect(work).rejects.toMatchObject({ code: ErrorCode.SERVICE_UNAVAILABLE });
  expect(isRefused()).toBe(true);
  result.resolve("late");
  expect(await late.promise).toBe("late");
});

test("R-MON-7: work of several statements waits on while the server answers others", async () => {
  const pool = open(2);
  const result = Promise.withResolvers<string>();
  const limitMs = 1_000;
  const work = whileAnswering(pool, limitMs, () => result.promise);
  work.catch(() => {});
  for (const end = performance.now() + 2 * limitMs; performance.now() < end; )
    await pool.query("select 1");
  result.resolve("done");
  expect(await work).toBe("done");
});

test("R-MON-7: callers behind statements that wait for a lock are refused while it is held, and jobs wait for it", async () => {
  const [callers, jobs] = [open(2), open(1, "jobs")];
  await callers.query("create table t ()");
  const locker = new Client({ connectionString: scratch.url });
  await locker.connect();
  await locker.query("begin; lock table t in access exclusive mode");
  const job = jobs.query("select from t");
  const asked = Array.from({ length: 20 }, () => callers.query("select from t"));
  const answers = await Promise.allSettled(asked);
  const codes = answers.map((each) => (each.status === "rejected" ? errorOf(each.reason) : ""));
  expect(new Set(codes)).toEqual(new Set(["55P03", "busy"]));
  await locker.end();
  expect((await job).rows).toEqual([]);
  expect((await callers.query("select from t")).rows).toEqual([]);
});

function errorOf(error: unknown): string {
  expect(isDatabaseLost(error) || String(error).includes("busy")).toBe(true);
  return error instanceof DatabaseError ? (error.code ?? "") : "busy";
}

test("R-MON-7: a connection whose statement is not answered in time is closed, and keeps nobody waiting", async () => {
  const proxy = await startFaultProxy(scratch.url);
  const servers = new DatabaseServer(proxy.url);
  const client = servers.createClient({ query_timeout: 100 });
  await client.connect();
  const ended = new Promise((resolve) => client.once("end", resolve));
  proxy.hang();
  await expect(client.query("select 1")).rejects.toThrow("Query read timeout");
  await ended;
  await proxy.close();
});
