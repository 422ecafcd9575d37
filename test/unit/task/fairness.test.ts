import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { TaskUpdate } from "../../../src/provider/task.ts";
import { openTasks, type Tasks, until } from "./worker-harness.ts";
import { imageNanos, model, one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterEach(() => tasks.stopAll());
afterAll(() => tasks.close());

const running: TaskUpdate = { status: "running" };

/** Puts many tasks in the queue, without their money: nothing here ends. */
async function enqueue(accountId: string, count: number, key = "m"): Promise<void> {
  await tasks.pool.query(
    `insert into task (id, account_id, key_id, model, type, params, fingerprint, request_id, deadline, hold,
      price_version, discount_bp)
     select gen_random_uuid(), $1, $1, $2, 2, '{}', '', 'r', now() + interval '1 hour', ${imageNanos}, 'v', 0
     from generate_series(1, $3)`,
    [accountId, key, count],
  );
}

async function counts(): Promise<Record<string, number>> {
  const { rows } = await tasks.pool.query<{ account_id: string; count: number }>(
    `select account_id, count(*)::int as count from task where state in ('submitting', 'running')
     group by account_id`,
  );
  return Object.fromEntries(rows.map((row) => [row.account_id, row.count]));
}

async function clear(): Promise<void> {
  await tasks.stopAll();
  await tasks.pool.query("truncate task");
}

test("an account with 1,000 tasks delays another's first one by no more than a turn", async () => {
  // Ids that are the first, so that their order alone would prefer them.
  const many = "00000000-0000-7000-8000-000000000001";
  const few = "ffffffff-0000-7000-8000-000000000002";
  await enqueue(many, 1_000);
  await enqueue(few, 1);
  // Of two that run at once one is the other's.
  const v = vendor({ poll: () => Promise.resolve(running) }, 2);
  tasks.work({ ...one({ v }), timings: { pollMs: 600_000, pollMsMax: 600_000 } });
  await until(async () => (v.asked.length === 2 ? true : undefined));
  expect(await counts()).toEqual({ [many]: 1, [few]: 1 });
  await clear();
});

test("accounts with equally many running tasks are served in turns, whatever their ids", async () => {
  const accounts = [1, 2, 3, 4].map((n) => `0000000${n}-0000-7000-8000-000000000000`);
  for (const account of accounts) await enqueue(account, 50);
  const order: string[] = [];
  // One at a time, and each is gone at once: who comes next is decided each time.
  const v = vendor(
    {
      submit: async ({ attemptToken }) => {
        const sql = "select account_id from task where attempt_token = $1";
        const { rows } = await tasks.pool.query<{ account_id: string }>(sql, [attemptToken]);
        order.push(rows[0]?.account_id ?? "");
        await tasks.pool.query(
          "update task set state = 'cancelled', cost = 0, finish_time = now() where attempt_token = $1",
          [attemptToken],
        );
        return { vendorTaskId: attemptToken };
      },
    },
    1,
  );
  tasks.work({ ...one({ v }), warn: () => {}, timings: { scanMs: 5 } });
  await until(async () => (order.length >= 12 ? true : undefined));
  expect(order.slice(0, 12)).toEqual([...accounts, ...accounts, ...accounts]);
  await clear();
});

test("an account's limit of running tasks holds with any number of processes", async () => {
  const accounts = ["1", "2"].map((n) => `0000000${n}-0000-7000-8000-000000000000`);
  for (const account of accounts) await enqueue(account, 30);
  const v = vendor({ poll: () => Promise.resolve(running) });
  const options = { ...one({ v }), timings: { pollMs: 600_000, pollMsMax: 600_000 } };
  tasks.work(options);
  tasks.work(options);
  tasks.work(options);
  await until(async () => (v.asked.length >= 40 ? true : undefined));
  // Each of the three looks once more.
  await tasks.stopAll();
  expect(await counts()).toEqual(Object.fromEntries(accounts.map((account) => [account, 20])));
  await clear();
});

test("a vendor's limit of running tasks holds, and its queued tasks do not block those of other vendors", async () => {
  const account = "00000001-0000-7000-8000-000000000000";
  await enqueue(account, 10, "full");
  await enqueue(account, 2, "other");
  const narrow = vendor({ poll: () => Promise.resolve(running) }, 3);
  const wide = vendor({ poll: () => Promise.resolve(running) });
  tasks.work({
    vendors: new Map(Object.entries({ narrow, wide })),
    config: {
      models: new Map([
        ["full", model("full", ["narrow"])],
        ["other", model("other", ["wide"])],
      ]),
    },
    accountMax: 6,
    timings: { pollMs: 600_000, pollMsMax: 600_000 },
  });
  await until(async () => (wide.asked.length === 2 ? true : undefined));
  await tasks.stopAll();
  expect(narrow.asked.length).toBe(3);
  expect(await counts()).toEqual({ [account]: 5 });
  await clear();
});
