/** Tasks whose vendors answer while the database is away: the answer is stored when it is back. */
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { openPool } from "../../src/db/open-pool.ts";
import type { Submitted } from "../../src/vendor/task.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { openTasks, type Tasks, until } from "./worker-harness.ts";
import { one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
});
afterAll(() => tasks.close());

/** A connection to the database of its own, which can fail. */
async function openOwn() {
  const proxy = await startFaultProxy(tasks.url);
  const pool = openPool(proxy.url, { max: 4, for: "jobs" });
  onTestFinished(async () => {
    await tasks.stopAll();
    await pool.end();
    await proxy.close();
  });
  return { proxy, pool };
}

test.each<{ name: string; answer: Submitted }>([
  { name: "has taken the task", answer: { vendorTaskId: "v-1" } },
  {
    name: "has made the result",
    answer: { done: { files: [{ bytes: Buffer.from("picture"), contentType: "image/png" }] } },
  },
])(
  "R-TSK-7: a vendor that $name during an outage is not asked again, though another process recovers the task",
  async ({ answer }) => {
    const { proxy, pool } = await openOwn();
    const asked = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<Submitted>();
    const v = vendor({
      resubmit: "blind",
      submit() {
        asked.resolve();
        return answered.promise;
      },
    });
    const timings = { leaseMs: 300, heartbeatMs: 100 };
    const quiet = { warn: () => {} };
    const id = await tasks.submit({ accountId: await tasks.account() });
    tasks.work({ ...one({ v }), ...quiet, pool, timings });
    await asked.promise;
    proxy.refuse(true);
    proxy.cut();
    answered.resolve(answer);
    // Another process, with a database, takes the task for lost.
    tasks.work({ ...one({ v }), ...quiet, timings: { ...timings, settleMs: 20_000 } });
    await until(async () => (await tasks.row(id)).state === "submit_unknown" || undefined);
    proxy.refuse(false);
    expect(await tasks.ended([id])).toMatchObject([{ state: "completed", error_code: null }]);
    expect(v.asked).toHaveLength(1);
  },
);

test("R-TSK-8: a connection that is cut around a commit does not lose a delivered result", async () => {
  const { proxy, pool } = await openOwn();
  const done = { files: [{ bytes: Buffer.from("picture"), contentType: "image/png" }] };
  const v = vendor({ resubmit: "blind", submit: () => Promise.resolve({ done }) });
  const points: string[] = [];
  const failpoint = (point: string): void => {
    // The server does its work, and nobody hears of it.
    if (/^(?:produce|complete)\.sent$/.test(point) && !points.includes(point)) {
      proxy.cutAtNextAnswer();
    }
    points.push(point);
  };
  const id = await tasks.submit({ accountId: await tasks.account() });
  tasks.work({ ...one({ v }), pool, failpoint, warn: () => {} });
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", error_code: null }]);
  expect(v.asked).toHaveLength(1);
  expect(points.filter((point) => point === "produce.sent").length).toBeGreaterThan(1);
});
