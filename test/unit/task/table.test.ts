/** The rules of tasks that the database itself enforces. */
import { randomBytes, randomUUID } from "node:crypto";
import { Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
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

async function insertTask(): Promise<string> {
  const id = randomUUID();
  await pool.query(
    `insert into task (id, account_id, key_id, model, type, params, fingerprint, request_id, deadline,
      hold, price_version, discount_bp)
     values ($1, $2, $2, 'm', 2, '{"prompt":"\\u0000"}', $3, 'r', now(), 5, 'v', 0)`,
    [id, randomUUID(), randomBytes(32)],
  );
  return id;
}

/**
 * Does something on a connection that hears of changes. Its own notices come before its next
 * answer.
 */
async function listening(
  told: string[],
  work: (client: PoolClient) => Promise<void>,
): Promise<void> {
  const client = await pool.connect();
  try {
    client.on("notification", ({ payload = "" }) => void told.push(payload));
    await client.query("listen task_changed");
    await work(client);
    await client.query("select 1");
  } finally {
    client.release(true);
  }
}

const ends: Readonly<Record<string, string>> = {
  completed: "progress = 100, result = '{}', cost = 5",
  failed: "error_code = 'upstream_error', error = 'e', cost = 0",
  cancelled: "cost = 0",
};

async function end(id: string, state: string): Promise<void> {
  const set = `state = '${state}', finish_time = now(), ${ends[state]}`;
  await pool.query(`update task set ${set} where id = $1`, [id]);
}

it.each(Object.keys(ends))("R-TSK-1: a %s task never changes again", async (state) => {
  const id = await insertTask();
  await end(id, state);
  const read = async () => (await pool.query("select * from task where id = $1", [id])).rows[0];
  const before = await read();
  for (const change of [
    "state = 'running', finish_time = null, cost = null, progress = 1, result = null, error_code = null",
    `result = '{"text":"x"}'`,
    "error = 'other'",
    "usage = '{}'",
    "cost = 1",
    "finish_time = now() + interval '1 s'",
    "cancel_requested = true",
    "vendor = 'v'",
  ]) {
    await expect(pool.query(`update task set ${change} where id = $1`, [id])).rejects.toThrow(
      /that is final/,
    );
  }
  // Only internal columns may change: a worker's lease ends after the task.
  await pool.query("update task set lease_until = null, fence = fence + 1 where id = $1", [id]);
  expect(await read()).toEqual({ ...before, fence: 1 });
});

it("R-TSK-1: a task has an end, a cost, an error and a result exactly where its state has", async () => {
  const id = await insertTask();
  for (const change of [
    "state = 'completed', progress = 100, finish_time = now(), cost = 1",
    "state = 'failed', finish_time = now(), cost = 0",
    "state = 'failed', error_code = 'upstream_error', finish_time = now(), cost = 1",
    "state = 'cancelled', finish_time = now()",
    "state = 'running', progress = 100",
    "state = 'lost'",
    "cost = 0",
  ]) {
    await expect(pool.query(`update task set ${change} where id = $1`, [id])).rejects.toThrow(
      /_check/,
    );
  }
});

it("R-HOOK-3: progress never goes down", async () => {
  const id = await insertTask();
  const write = async (progress: number) => {
    const sql = "update task set state = 'running', progress = $2 where id = $1 returning progress";
    return (await pool.query(sql, [id, progress])).rows[0].progress;
  };
  expect([await write(40), await write(7), await write(41)]).toEqual([40, 40, 41]);
});

it("the table notifies of every visible change, of no other, and records the states", async () => {
  const id = await insertTask();
  const told: string[] = [];
  await listening(told, async (client) => {
    const change = (set: string) =>
      client.query(`update task set ${set} where id = $1 returning version`, [id]);
    await change("state = 'submitting', fence = 1");
    await change("lease_until = now(), next_time = now()");
    await change("state = 'running', progress = 3, vendor_task_id = 'v1'");
    await change("poll_count = 1, progress = 2");
    const { rows } = await change("progress = 5");
    expect(rows[0].version).toBe(4);
  });
  expect(told).toEqual([id, id, id]);
  const events = await pool.query(
    "select kind, state from task_event where task_id = $1 order by id",
    [id],
  );
  expect(events.rows).toEqual([
    { kind: "state", state: "submitting" },
    { kind: "state", state: "running" },
  ]);
  await expect(pool.query("delete from task_event where task_id = $1", [id])).rejects.toThrow();
  await expect(
    pool.query("update task_event set kind = 'x' where task_id = $1", [id]),
  ).rejects.toThrow();
  await pool.query("delete from task where id = $1", [id]);
  await pool.query("delete from task_event where task_id = $1", [id]);
});
