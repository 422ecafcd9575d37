import { afterEach, expect, test } from "vitest";
import { openDatabase } from "../../src/db/database.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

let scratch: TestDatabase | undefined;
afterEach(async () => {
  await scratch?.close();
  scratch = undefined;
});

test("a database opens by its address, socket folder included", async () => {
  scratch = await createTestDatabase();
  const name = new URL(scratch.url).pathname.slice(1);
  const database = await openDatabase(scratch.url);
  const viaPool = await database.pool.query("select current_database()");
  const viaOrm = await database.orm.em.fork().execute("select current_database()");
  expect(viaPool.rows).toEqual([{ current_database: name }]);
  expect(viaOrm).toEqual([{ current_database: name }]);
  await database.close();
});
