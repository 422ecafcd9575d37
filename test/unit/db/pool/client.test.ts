/** A connection to the database: its limits, and when it is closed. */
import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../../src/db/database.ts";
import { openPool } from "../../../../src/db/pool/open-pool.ts";
import { DatabaseServer } from "../../../../src/db/pool/server.ts";
import { createTestDatabase } from "../../../support/database.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";

test("a server that refuses a write as read-only gets no more statements on that connection (25006)", async () => {
  const scratch = await createTestDatabase();
  onTestFinished(() => scratch.close());
  const pool = openPool(scratch.url, { max: 1, for: "callers" });
  onTestFinished(() => pool.end());
  const client = await pool.connect();
  const before = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  await client.query("set default_transaction_read_only = on");
  const refused = client.query("create table t ()");
  await expect(refused).rejects.toMatchObject({ code: "25006" });
  // As a library does that keeps its connection.
  client.release();
  const after = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  expect(after.rows).not.toEqual(before.rows);
  await pool.query("create table t ()");
});

test("R-MON-7: opening a connection to a server that hangs fails within its limit", async () => {
  const scratch = await createTestDatabase();
  onTestFinished(() => scratch.close());
  const proxy = await startFaultProxy(scratch.url);
  onTestFinished(() => proxy.close());
  proxy.hang();
  const client = new DatabaseServer(proxy.url).createClient({ connectLimitMs: 100 });
  await expect(client.connect()).rejects.toThrow(/^timeout: the database at 127\.0\.0\.1:\d+/);
});

test("R-MON-7: a connection whose statement is not answered in time is closed", async () => {
  const scratch = await createTestDatabase();
  onTestFinished(() => scratch.close());
  const proxy = await startFaultProxy(scratch.url);
  onTestFinished(() => proxy.close());
  const client = new DatabaseServer(proxy.url).createClient({ query_timeout: 100 });
  await client.connect();
  const ended = new Promise((resolve) => client.once("end", resolve));
  proxy.hang();
  await expect(client.query("select 1")).rejects.toThrow("Query read timeout");
  await ended;
});

/** Keeps the event loop from running, as loading and compiling a program does. */
function blockLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test("connections are opened although the event loop is blocked for longer than they may take", async () => {
  const scratch = await createTestDatabase();
  onTestFinished(() => scratch.close());
  const database = await openDatabase(scratch.url);
  const statements = [
    database.pool.query("select 1"),
    database.orm.em.fork().execute("select 1"),
    new DatabaseServer(scratch.url).ask(600),
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
