import { afterAll, beforeAll, expect, test } from "vitest";
import { createTaskJobs } from "../../../src/task/jobs.ts";
import { openTasks, type Tasks } from "./worker-harness.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterAll(() => tasks.close());

const day = 24 * 60 * 60 * 1_000;

/** A task of some days ago; if it ended, it did so a day later. */
async function insert(daysAgo: number, isEnded: boolean): Promise<string> {
  const hex = (Date.now() - daysAgo * day).toString(16).padStart(12, "0");
  const id = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${isEnded ? "1" : "2"}00000000000`;
  await tasks.pool.query(
    `insert into task (id, account_id, key_id, model, type, params, fingerprint, request_id, deadline, hold,
      price_version, discount_bp, create_time)
    values ($1, $1, $1, 'm', 2, '{}', '', 'r', now(), 0, 'v', 0, now() - $2 * interval '1 day')`,
    [id, daysAgo],
  );
  const end = `update task set state = 'cancelled', cost = 0, finish_time = now() - $2 * interval '1 day'
    where id = $1`;
  if (isEnded) await tasks.pool.query(end, [id, daysAgo - 1]);
  return id;
}

test("tasks are kept for 30 days after their end, with their events", async () => {
  const [old, young, open] = [
    await insert(32, true),
    await insert(30, true),
    await insert(40, false),
  ];
  const ages: number[] = [];
  const onCount = (_: unknown, queueAgeSeconds: number): void => void ages.push(queueAgeSeconds);
  const jobs = createTaskJobs({ pool: tasks.pool, onCount });
  expect(await jobs.expire()).toBe(1);
  const { rows } = await tasks.pool.query<{ id: string }>("select id from task order by id");
  expect(rows.map(({ id }) => id)).toEqual([open, young].toSorted());
  expect(await tasks.events(old, "state")).toEqual([]);
  expect(await tasks.states(young)).toEqual(["cancelled"]);
  expect(Object.fromEntries(await jobs.count())).toEqual({
    queued: 1,
    submitting: 0,
    submit_unknown: 0,
    running: 0,
    finalizing: 0,
  });
  expect((ages.at(-1) ?? 0) / (day / 1_000)).toBeCloseTo(40, 1);
});
