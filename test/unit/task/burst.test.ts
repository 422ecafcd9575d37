/** Many submits of one account at once, and what others notice of them. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { openTasks, type Tasks } from "./harness.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterAll(() => tasks.close());

const body = { modelKey: "image", imageParams: { prompt: "p" } };

it("R-TSK-2: a burst of submits queues, and another account's submit does not wait for it", async () => {
  const many = await tasks.customer();
  const few = await tasks.customer();
  const submit = async (customer: typeof many): Promise<number> =>
    (await tasks.send(customer, "/api/ai/tasks", { body })).status;
  // As long as the account is locked, none of its submits can end.
  const lock = await tasks.pool.connect();
  await lock.query("begin");
  await lock.query("select from balance where account_id = $1 for update", [many.accountId]);
  const burst = Array.from({ length: 60 }, () => submit(many));
  const waits = `select count(*)::int as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  const stuck = async (): Promise<number> =>
    (await tasks.pool.query<{ count: number }>(waits)).rows[0]?.count ?? 0;
  await expect.poll(stuck).toBe(6);
  expect(await Promise.all([submit(few), submit(few), submit(few)])).toEqual([200, 200, 200]);
  await lock.query("rollback");
  lock.release();
  // On a busy machine the lock lasts longer than a submit may wait for it.
  const statuses = await Promise.all(burst);
  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  for (const status of statuses) if (status === 503) expect(await submit(many)).toBe(200);
});
