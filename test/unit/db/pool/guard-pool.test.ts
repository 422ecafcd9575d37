/** Connections that break while in use, as in an outage. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, openDatabase } from "../../../../src/db/database.ts";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";

let scratch: TestDatabase;
let database: Database;
beforeEach(async () => {
  scratch = await createTestDatabase();
  database = await openDatabase(scratch.url);
});
afterEach(async () => {
  await database.close();
  await scratch.close();
});

async function breakConnection(pid: number | undefined): Promise<void> {
  await database.pool.query("select pg_terminate_backend($1)", [pid]);
}

test("R-MON-7: transactions whose connection breaks cost the ORM no connection, and closing ends", async () => {
  // One more than it may open.
  for (let times = 0; times < 9; times++) {
    const broken = database.orm.em.fork().transactional(async (em) => {
      const rows: { pid: number }[] = await em.execute("select pg_backend_pid() as pid");
      await breakConnection(rows[0]?.pid);
      await em.execute("select 1");
    });
    await expect(broken).rejects.toThrow();
  }
  const answers = async (): Promise<unknown> => database.orm.em.fork().execute("select 1 as one");
  await expect.poll(() => answers().catch(() => "none")).toEqual([{ one: 1 }]);
});

test("a connection that breaks while in use does not end the process", async () => {
  const client = await database.pool.connect();
  const ended = new Promise((resolve) => client.once("end", resolve));
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  await breakConnection(rows[0]?.pid);
  await ended;
  await expect(client.query("select 1")).rejects.toThrow();
  client.release(true);
  expect((await database.pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
});
