import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../src/core/uuid.ts";
import { firstId } from "../../../src/db/partition.ts";
import { createOperatorJobs } from "../../../src/operator/jobs.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 2 });
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

const dayMs = 86_400_000;

async function record(daysAgo: number): Promise<string> {
  const time = new Date(Date.now() - daysAgo * dayMs);
  const id = firstId(time).slice(0, 14) + newId().slice(14);
  await pool.query(
    `insert into audit_entry (id, create_time, actor, request_id, action, subject, reason)
       values ($1, $2, 'a', 'r', 'money.grant', 's', '')`,
    [id, time],
  );
  return id;
}

test("entries of the audit log are kept, or deleted after the configured days, and by nothing else", async () => {
  const [, young] = [await record(800), await record(700)];
  let auditDays: number | undefined;
  const jobs = createOperatorJobs({ pool, auditDays: () => auditDays, warn: () => {} });
  await jobs.expire();
  const ids = async (): Promise<readonly string[]> =>
    (await pool.query<{ id: string }>("select id from audit_entry")).rows.map(({ id }) => id);
  expect(await ids()).toHaveLength(2);
  auditDays = 730;
  await jobs.expire();
  expect(await ids()).toEqual([young]);
  // On the connection that the job used.
  for (let n = 0; n < 2; n++) {
    await expect(pool.query("delete from audit_entry")).rejects.toThrow("append-only");
  }
});
