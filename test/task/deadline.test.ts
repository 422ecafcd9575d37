/** How long tasks may take: R-TSK-9, by their models. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TaskUpdate } from "../../src/vendor/task.ts";
import { openTasks, type Tasks } from "./worker-harness.ts";
import { model, vendor } from "./worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterAll(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
  await tasks.close();
});

const running: TaskUpdate = { status: "running", progress: 10 };

test("a task has the deadline of its model, however many are taken at once", async () => {
  const account = await tasks.account();
  const v = vendor({ poll: () => Promise.resolve(running) });
  const known = [
    { ...model("long", ["v"]), deadlineMs: 7_200_000 },
    { ...model("short", ["v"]), deadlineMs: 50 },
    model("plain", ["v"]),
  ];
  const ids = await Promise.all(
    known.map(({ key }) => tasks.submit({ accountId: account, model: key })),
  );
  const models = new Map(known.map((each) => [each.key, each]));
  tasks.work({ vendors: new Map([["v", v]]), models, timings: { runMs: 60_000 } });
  const [long = "", short = "", plain = ""] = ids;
  expect(await tasks.ended([short])).toMatchObject([
    { state: "failed", error_code: "task_timeout", cost: "0" },
  ]);
  const sql = `select id, extract(epoch from deadline - start_time)::float8 as seconds from task
    where id = any($1)`;
  const { rows } = await tasks.pool.query<{ id: string; seconds: number }>(sql, [ids]);
  const seconds = new Map(rows.map((each) => [each.id, Math.round(each.seconds * 100) / 100]));
  expect([long, short, plain].map((id) => seconds.get(id))).toEqual([7_200, 0.05, 60]);
  expect((await tasks.row(long)).state).toBe("running");
});
