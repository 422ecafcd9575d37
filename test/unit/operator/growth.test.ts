import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSystemRpcs } from "../../../src/operator/service.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 6 });
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

const read = async () => {
  const { getSystemInfo } = createSystemRpcs({ pool, version: "" });
  return getSystemInfo({} as never, {} as never);
};

test("the status says the bytes of a call and a year's size at the rate of 7 days, once there are enough calls", async () => {
  expect(await read()).toMatchObject({ callBytes: 0n, yearBytes: 0n });
  await pool.query(
    `insert into ledger_charge (id, account_id, seq, cost, paid, balance_after, held)
       select ledger_uuid(), gen_random_uuid(), n, 1, 1, 1, 1 from generate_series(1, 5000) n`,
  );
  await pool.query("analyze ledger_charge");
  await pool.query(
    `insert into usage_hour (account_id, hour, key_id, model, vendor, calls)
       values (gen_random_uuid(), now() - interval '1 day', '', '', '', 7000),
         (gen_random_uuid(), now() - interval '8 days', '', '', '', 1000000)`,
  );
  const { callBytes = 0n, yearBytes = 0n } = await read();
  expect(callBytes).toBeGreaterThan(80n);
  expect(callBytes).toBeLessThan(400n);
  // Rounded to whole bytes.
  expect(Math.abs(Number(yearBytes) - Number(callBytes) * 365_000)).toBeLessThan(365_000);
});
