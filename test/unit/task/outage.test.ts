/**
 * Tasks that are claimed, and whose vendors answer, while the database goes away: nothing is lost
 * or asked for twice.
 */
import { randomBytes } from "node:crypto";
import { Client, Pool } from "pg";
import { stdSerializers } from "pino";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { ErrorCode } from "../../../src/core/errors.ts";
import { openPool } from "../../../src/db/pool/open-pool.ts";
import type { WorkerOptions } from "../../../src/task/work/worker-options.ts";
import type { Submitted } from "../../../src/provider/task.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { openSubmit } from "./submit-setup.ts";
import { openTasks, type Tasks, until } from "./worker-harness.ts";
import { one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
});
afterAll(() => tasks.close());

/** A separate connection to the database, which can fail. */
async function openOwn() {
  const proxy = await startFaultProxy(tasks.url);
  const pool = openPool(proxy.url, { max: 4, for: "jobs" });
  // Open before the outages: no statement waits for a connection between a failpoint and the next
  // answer.
  const connections = await Promise.all(Array.from({ length: 4 }, () => pool.connect()));
  for (const each of connections) each.release();
  onTestFinished(async () => {
    await tasks.stopAll();
    await pool.end();
    await proxy.close();
  });
  return { proxy, pool };
}

/** Does something when a worker passes by a point for the first time. */
function onceAt(point: string, act: () => void): (passed: string) => void {
  let isDone = false;
  return (passed) => {
    if (passed !== point || isDone) return;
    isDone = true;
    act();
  };
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

test("R-TSK-7: a claim whose confirmation is lost is taken back, and its task is submitted once", async () => {
  const { proxy, pool } = await openOwn();
  const points: string[] = [];
  const failpoint = (point: string): void => {
    // The server commits, but the answer is lost.
    if (point === "claim.sent" && !points.includes(point)) proxy.cutAtNextAnswer();
    points.push(point);
  };
  const v = vendor({ resubmit: "blind" });
  const id = await tasks.submit({ accountId: await tasks.account(), params: { prompt: "secret" } });
  const logged: string[] = [];
  const warn: WorkerOptions["warn"] = (message, { err }) =>
    void logged.push(message, JSON.stringify(stdSerializers.err(err as Error)));
  tasks.work({ ...one({ v }), pool, failpoint, warn });
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", error_code: null }]);
  expect(points.filter((point) => point === "claim.sent")).toHaveLength(2);
  expect(v.asked).toHaveLength(1);
  expect(logged.join()).toContain("did not confirm a claim");
  expect(logged.join()).not.toContain("secret");
});

test("R-TSK-7: a claim that commits only after its connection broke is taken back too", async () => {
  const { proxy, pool } = await openOwn();
  // Commits wait, as for a slow disk or a standby that must confirm.
  const key = 4_711;
  const gate = new Client({ connectionString: tasks.url });
  await gate.connect();
  onTestFinished(async () => {
    await gate.end();
    await tasks.pool.query("drop function wait_at_gate cascade");
  });
  await gate.query("select pg_advisory_lock($1)", [key]);
  await tasks.pool.query(`create function wait_at_gate() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared(${key}); return null; end $$`);
  await tasks.pool.query(`create constraint trigger wait_at_gate after update on task
    deferrable initially deferred for each row
    when (old.state = 'queued' and new.state = 'submitting') execute function wait_at_gate()`);
  const waiting = (count: number) =>
    until(async () => {
      const { rows } = await tasks.pool.query<{ count: number }>(
        `select count(*)::int as count from pg_locks join pg_database on pg_database.oid = database
          where datname = current_database() and locktype = 'advisory' and not granted`,
      );
      return (rows[0]?.count ?? 0) >= count || undefined;
    });
  const committing = Promise.withResolvers<void>();
  const v = vendor({ resubmit: "blind" });
  const timings = { leaseMs: 300, heartbeatMs: 100 };
  const id = await tasks.submit({ accountId: await tasks.account() });
  const failpoint = onceAt("claim.sent", committing.resolve);
  tasks.work({ ...one({ v }), pool, failpoint, warn: () => {}, timings });
  await committing.promise;
  await waiting(1);
  proxy.cutWaiting();
  // A query about the claim must wait for it.
  await waiting(2);
  await gate.query("select pg_advisory_unlock($1)", [key]);
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", error_code: null }]);
  expect(v.asked).toHaveLength(1);
});

test("R-TSK-7: a task whose client cancels it while it is queued again never reaches its vendor", async () => {
  const { proxy, pool } = await openOwn();
  const cut = Promise.withResolvers<void>();
  const failpoint = onceAt("claim.sent", () => {
    proxy.cutAtNextAnswer();
    proxy.refuse(true);
    cut.resolve();
  });
  const v = vendor({ resubmit: "blind" });
  const id = await tasks.submit({ accountId: await tasks.account() });
  tasks.work({ ...one({ v }), pool, failpoint, warn: () => {} });
  await cut.promise;
  await until(async () => (await tasks.row(id)).state === "submitting" || undefined);
  await tasks.pool.query("update task set cancel_requested = true where id = $1", [id]);
  proxy.refuse(false);
  expect(await tasks.ended([id])).toMatchObject([{ state: "cancelled" }]);
  expect(v.asked).toHaveLength(0);
});

test("R-TSK-7: a process that was unresponsive too long to submit queues its task again, though another one has marked it as lost", async () => {
  const { proxy, pool } = await openOwn();
  const claimed = Promise.withResolvers<void>();
  // It still has to read the long parameters.
  const failpoint = onceAt("claim.answered", () => {
    proxy.refuse(true);
    proxy.cut();
    claimed.resolve();
  });
  const v = vendor({ resubmit: "blind" });
  const timings = { leaseMs: 300, heartbeatMs: 100 };
  const params = { prompt: randomBytes(20_000).toString("base64") };
  const id = await tasks.submit({ accountId: await tasks.account(), params });
  const first = tasks.work({ ...one({ v }), pool, failpoint, warn: () => {}, timings });
  await claimed.promise;
  tasks.work({ ...one({ v }), warn: () => {}, timings: { ...timings, settleMs: 20_000 } });
  await until(async () => (await tasks.row(id)).state === "submit_unknown" || undefined);
  proxy.refuse(false);
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", error_code: null }]);
  expect(v.asked).toHaveLength(1);
  await first.stop();
});

test("R-TSK-7: a claim whose confirmation is lost is taken back, though another process has taken its task for lost meanwhile", async () => {
  const { proxy, pool } = await openOwn();
  const cut = Promise.withResolvers<void>();
  const failpoint = onceAt("claim.sent", () => {
    proxy.cutAtNextAnswer();
    proxy.refuse(true);
    cut.resolve();
  });
  const v = vendor({ resubmit: "blind" });
  const timings = { leaseMs: 300, heartbeatMs: 100 };
  const id = await tasks.submit({ accountId: await tasks.account() });
  const first = tasks.work({ ...one({ v }), pool, failpoint, warn: () => {}, timings });
  await cut.promise;
  tasks.work({ ...one({ v }), warn: () => {}, timings: { ...timings, settleMs: 20_000 } });
  await until(async () => (await tasks.row(id)).state === "submit_unknown" || undefined);
  expect(v.asked).toHaveLength(0);
  proxy.refuse(false);
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", error_code: null }]);
  expect(v.asked).toHaveLength(1);
  await first.stop();
});

test("R-TSK-8: a connection that is cut around a commit does not lose a delivered result", async () => {
  const { proxy, pool } = await openOwn();
  const done = { files: [{ bytes: Buffer.from("picture"), contentType: "image/png" }] };
  const v = vendor({ resubmit: "blind", submit: () => Promise.resolve({ done }) });
  const points: string[] = [];
  const failpoint = (point: string): void => {
    // The server does its work, but the answer is lost.
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

test("R-MON-7: a submit that was refused while the database was frozen is not accepted later", async () => {
  const { proxy } = await openOwn();
  const { submit, close } = openSubmit(proxy.url);
  onTestFinished(close);
  const accountId = await tasks.account(500n);
  proxy.hang();
  const refused = { code: ErrorCode.SERVICE_UNAVAILABLE };
  await expect(submit(accountId, "unconnected")).rejects.toMatchObject(refused);
  proxy.resume();
  expect(await submit(accountId, "accepted")).toMatchObject({ replayed: false });
  const { rows } = await tasks.pool.query("select callback_id from task where account_id = $1", [
    accountId,
  ]);
  expect(rows).toEqual([{ callback_id: "accepted" }]);
  tasks.work(one({ v: vendor() }));
  await until(async () => (await tasks.balance(accountId)).held === 0n || undefined);
});

test("R-TSK-7: a submit whose connection breaks around its commit is answered with the task that it made", async () => {
  const { proxy } = await openOwn();
  let isCut = false;
  const failpoint = (point: string): void => {
    if (point === "submit.sent" && !isCut) proxy.cutAtNextAnswer();
    isCut = true;
  };
  const { submit, close } = openSubmit(proxy.url, { failpoint });
  onTestFinished(close);
  const accountId = await tasks.account(500n);
  await submit(accountId, "connected");
  isCut = false;
  const { task, replayed } = await submit(accountId, null);
  expect(replayed).toBe(false);
  const { rows } = await tasks.pool.query("select id from task where account_id = $1 order by id", [
    accountId,
  ]);
  expect(rows).toHaveLength(2);
  expect(rows[1]).toEqual({ id: task.id });
  tasks.work(one({ v: vendor() }));
  await until(async () => (await tasks.balance(accountId)).held === 0n || undefined);
});

test("R-TSK-7: a task that was accepted in an outage reported to its client is cancelled", async () => {
  const { proxy } = await openOwn();
  const [onAccepted, onUnknown] = [vi.fn(), vi.fn()];
  let isOut = false;
  const failpoint = (point: string): void => {
    if (point !== "submit.sent" || !isOut) return;
    proxy.cutAtNextAnswer();
    proxy.refuse(true);
  };
  const { submit, close } = openSubmit(proxy.url, { failpoint, onAccepted, onUnknown });
  onTestFinished(close);
  const accountId = await tasks.account(500n);
  const { task: before } = await submit(accountId, null);
  isOut = true;
  const refused = { code: ErrorCode.SERVICE_UNAVAILABLE };
  await expect(submit(accountId, null)).rejects.toMatchObject(refused);
  expect(onUnknown).not.toHaveBeenCalled();
  proxy.refuse(false);
  await vi.waitFor(() => expect(onUnknown).toHaveBeenCalledTimes(1));
  expect(onAccepted.mock.calls).toMatchObject([[{ id: before.id }]]);
  expect(onUnknown).not.toHaveBeenCalledWith(expect.objectContaining({ id: before.id }));
  tasks.work(one({ v: vendor() }));
  await until(async () => (await tasks.balance(accountId)).held === 0n || undefined);
});

test("R-MON-7: a task that is accepted after its client was refused is cancelled, unless a repetition can find it", async () => {
  const [onAccepted, onUnknown] = [vi.fn(), vi.fn()];
  // Nothing is known of its server but what these submits see: that it does not answer.
  const pool = new Pool({ connectionString: tasks.url, max: 2 });
  const { submit, close } = openSubmit(tasks.url, { pool, onAccepted, onUnknown });
  onTestFinished(close);
  const accountId = await tasks.account(500n);
  const lock = await tasks.pool.connect();
  await lock.query("begin");
  await lock.query("select from balance where account_id = $1 for update", [accountId]);
  const submits = await Promise.allSettled([submit(accountId, null), submit(accountId, "order")]);
  for (const each of submits) {
    expect(each).toMatchObject({ reason: { code: ErrorCode.SERVICE_UNAVAILABLE } });
  }
  expect([onAccepted.mock.calls, onUnknown.mock.calls]).toEqual([[], []]);
  await lock.query("rollback");
  lock.release();
  await vi.waitFor(() => {
    expect(onAccepted).toHaveBeenCalledTimes(1);
    expect(onUnknown).toHaveBeenCalledTimes(1);
  });
  const { task, replayed } = await submit(accountId, "order");
  expect(replayed).toBe(true);
  expect(onAccepted).toHaveBeenCalledWith(expect.objectContaining({ id: task.id }));
  expect(onUnknown).not.toHaveBeenCalledWith(expect.objectContaining({ id: task.id }));
  tasks.work(one({ v: vendor() }));
  await until(async () => (await tasks.balance(accountId)).held === 0n || undefined);
});
