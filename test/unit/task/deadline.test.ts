/** Maximum duration of tasks: R-TSK-9, by their models. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { TaskUpdate } from "../../../src/provider/task.ts";
import { HttpFailure } from "../../../src/http/failure.ts";
import { openTasks, type Tasks, until } from "./worker-harness.ts";
import { completed, model, one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterEach(() => tasks.stopAll());
afterAll(async () => {
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
  tasks.work({ vendors: new Map([["v", v]]), config: { models }, timings: { runMs: 60_000 } });
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

test("a result that its vendor has at the deadline is taken, though no process polled until then", async () => {
  const accountId = await tasks.account();
  const id = await tasks.submit({ accountId });
  let news: TaskUpdate = running;
  const v = vendor({ poll: () => Promise.resolve(news) });
  const first = tasks.work(one({ v }));
  await until(async () => (await tasks.row(id)).state === "running" || undefined);
  await first.stop();
  news = completed;
  await tasks.pool.query(
    "update task set deadline = now() - interval '1 hour', next_time = now() - interval '1 hour' where id = $1",
    [id],
  );
  tasks.work(one({ v }));
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", cost: "100" }]);
});

test("a task whose vendor does not answer at the deadline fails with task_timeout", async () => {
  const accountId = await tasks.account();
  const id = await tasks.submit({ accountId });
  const v = vendor({ poll: () => Promise.reject(new HttpFailure("reset", "gone")) });
  const models = new Map([["m", { ...model("m", ["v"]), deadlineMs: 50 }]]);
  tasks.work({ vendors: new Map([["v", v]]), config: { models } });
  expect(await tasks.ended([id])).toMatchObject([{ error_code: "task_timeout", cost: "0" }]);
});
