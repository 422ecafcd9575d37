/** Tasks without an update: they are rescheduled like others, whatever is requested meanwhile. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { isReschedule, applyTransition, type Transition } from "../../../src/task/transition.ts";
import { type TaskRow, workColumns } from "../../../src/task/task-row.ts";
import { openTasks, type Tasks } from "./worker-harness.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterAll(() => tasks.close());

/** A task at its vendor, under a lease. */
async function taken(more = ""): Promise<TaskRow> {
  const id = await tasks.submit({ accountId: await tasks.account() });
  await tasks.pool.query(
    `update task set state = 'running', fence = 3, progress = 10, vendor = 'v', poll_count = 4, failure_count = 2,
       start_time = now(), attempt_time = now(), lease_until = now() + interval '1 min' ${more} where id = $1`,
    [id],
  );
  const sql = `select ${workColumns} from task where id = $1`;
  const { rows } = await tasks.pool.query<TaskRow>(sql, [id]);
  if (rows[0] === undefined) throw new Error("it is gone");
  return rows[0];
}

const look: Transition = {
  progress: 10,
  set: { poll_count: 5, failure_count: 0 },
  releaseMs: 60_000,
};

/** Returns the whole seconds until it is due. */
async function dueSeconds(id: string): Promise<number> {
  const sql =
    "select extract(epoch from next_time - now())::float8 as seconds from task where id = $1";
  const { rows } = await tasks.pool.query<{ seconds: number }>(sql, [id]);
  return Math.round(rows[0]?.seconds ?? Number.NaN);
}

test("a reschedule writes the counts, gives the lease back, and sends no webhook", async () => {
  const task = await taken();
  expect(isReschedule(task, look)).toBe(true);
  expect(await applyTransition({ pool: tasks.pool }, task, look)).toBe(task);
  const row = await tasks.row(task.id);
  expect(row).toMatchObject({
    state: "running",
    progress: 10,
    poll_count: 5,
    failure_count: 0,
    lease_until: null,
    fence: 3,
    version: task.version,
  });
  expect(await dueSeconds(task.id)).toBeGreaterThan(50);
});

test("progress goes up and never down", async () => {
  const task = await taken();
  for (const [told, progress] of [
    [70, 70],
    [20, 70],
    [undefined, 70],
  ]) {
    await applyTransition({ pool: tasks.pool }, task, { ...look, progress: told });
    expect((await tasks.row(task.id)).progress).toBe(progress);
  }
});

test.each([
  ["asked to cancel it", "cancel_requested = true"],
  ["told of news", "notification_count = notification_count + 1"],
])("who %s meanwhile waits for no pause", async (_, set) => {
  const task = await taken();
  await tasks.pool.query(`update task set ${set} where id = $1`, [task.id]);
  await applyTransition({ pool: tasks.pool }, task, look);
  expect(await dueSeconds(task.id)).toBeLessThanOrEqual(0);
});

test("a rescheduled task is due at its deadline at the latest", async () => {
  const task = await taken(", deadline = now() + interval '20 s'");
  await applyTransition({ pool: tasks.pool }, task, { ...look, releaseMs: 3_600_000 });
  expect(await dueSeconds(task.id)).toBeLessThanOrEqual(20);
});

test.each([
  ["somebody else's", "fence = 4"],
  ["ended", "state = 'cancelled', cost = 0, finish_time = now()"],
])("one that is %s by now stays as it is", async (_, set) => {
  const task = await taken();
  await tasks.pool.query(`update task set ${set} where id = $1`, [task.id]);
  const before = await tasks.row(task.id);
  expect(await applyTransition({ pool: tasks.pool }, task, look)).toBeUndefined();
  expect(await tasks.row(task.id)).toEqual(before);
});

test("a transition with a visible change is no reschedule", async () => {
  const task = await taken();
  const heard = { ...task, callback_url: "https://receiver.test/" };
  expect(isReschedule(heard, look)).toBe(true);
  expect(isReschedule(heard, { ...look, progress: 11 })).toBe(false);
  expect(isReschedule(task, { ...look, progress: 11 })).toBe(true);
  expect(isReschedule(task, { ...look, event: "accept" })).toBe(false);
  expect(isReschedule(task, { ...look, set: { vendor_task_id: "v1" } })).toBe(false);
  expect(isReschedule(task, { ...look, inSameTransaction: () => Promise.resolve() })).toBe(false);
  expect(isReschedule(task, { progress: 10 })).toBe(false);
});
