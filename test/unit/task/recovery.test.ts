/** Tasks whose process, vendor or client fails. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { HttpFailure } from "../../../src/http/failure.ts";
import { ResultFailure } from "../../../src/result/result.ts";
import type { CancelAnswer, TaskUpdate, VendorTasks } from "../../../src/provider/task.ts";
import { openTasks, type Tasks, until } from "./worker-harness.ts";
import { completed, one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
});
afterAll(() => tasks.close());

const reset = () => Promise.reject(new HttpFailure("reset", "ECONNRESET"));
const running: TaskUpdate = { status: "running", progress: 10 };

/** A vendor that received the request, but whose first answer is lost. */
function forgetful(resubmit: VendorTasks["resubmit"]) {
  const jobs = new Set<string>();
  let answers = 0;
  const v = vendor({
    resubmit,
    submit({ attemptToken }) {
      jobs.add(attemptToken);
      return answers++ === 0 ? reset() : Promise.resolve({ vendorTaskId: attemptToken });
    },
    find: (token) => Promise.resolve(jobs.has(token) ? { vendorTaskId: token } : undefined),
  });
  return { ...v, jobs };
}

test("R-TSK-7: a lost answer is resubmitted to a vendor with idempotent submits", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  const v = forgetful("idempotent");
  tasks.work(one({ v }));
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
  expect([v.asked.length, v.jobs.size]).toEqual([2, 1]);
  expect((await tasks.states(id)).slice(0, 4)).toEqual([
    "submitting",
    "submit_unknown",
    "submitting",
    "running",
  ]);
});

test("R-TSK-7: a submitted task is found at a vendor that can search, and not submitted again", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  const v = forgetful("findable");
  tasks.work(one({ v }));
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
  expect([v.asked.length, v.jobs.size]).toEqual([1, 1]);
});

test("R-TSK-7: a process whose configuration lacks a task's vendor asks again soon, so that another one can take the task", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  let news: TaskUpdate = running;
  const v = vendor({ poll: () => Promise.resolve(news) });
  tasks.work(one({ v }));
  await until(async () => ((await tasks.row(id)).poll_count > 0 ? true : undefined));
  await tasks.stopAll();
  tasks.work(one({ other: vendor() }));
  await until(async () => ((await tasks.row(id)).failure_count > 0 ? true : undefined));
  news = completed;
  tasks.work(one({ v }));
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
});

test("R-TSK-7: a task that is not found is resubmitted only after a while", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  let finds = 0;
  const v = vendor({
    resubmit: "findable",
    submit: ({ attemptToken }) =>
      v.asked.length === 1 ? reset() : Promise.resolve({ vendorTaskId: attemptToken }),
    find() {
      finds++;
      return finds === 1 ? reset() : Promise.resolve(undefined);
    },
  });
  tasks.work({ ...one({ v }), timings: { settleMs: 600_000 } });
  await until(async () => {
    const { state, lease_until: lease } = await tasks.row(id);
    return finds === 2 && state === "submit_unknown" && lease === null ? true : undefined;
  });
  expect(v.asked.length).toBe(1);
  await tasks.pool.query(
    "update task set attempt_time = attempt_time - interval '1 hour', next_time = now() where id = $1",
    [id],
  );
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
  expect([v.asked.length, new Set(v.asked).size]).toEqual([2, 1]);
});

test("R-TSK-7: a blind submit with a lost answer is never repeated, and nothing is charged", async () => {
  const account = await tasks.account(500n);
  const id = await tasks.submit({ accountId: account });
  const v = forgetful("blind");
  const outcomes: string[] = [];
  tasks.work({ ...one({ v }), onSubmit: (_vendor, outcome) => void outcomes.push(outcome) });
  expect(await tasks.ended([id])).toMatchObject([
    { state: "failed", error_code: "upstream_submit_unknown", cost: "0" },
  ]);
  expect(v.asked.length).toBe(1);
  expect(outcomes).toEqual(["unknown"]);
  expect(await tasks.balance(account)).toEqual({ available: 500n, held: 0n });
});

test("R-TSK-5: a running task is cancelled at its vendor once, and the vendor's last report counts", async () => {
  const answers: Record<string, CancelAnswer> = {};
  const asked: string[] = [];
  const news: Record<string, TaskUpdate> = {};
  const v = vendor({
    cancel(vendorTaskId) {
      asked.push(vendorTaskId);
      return Promise.resolve(answers[vendorTaskId] ?? "too_late");
    },
    poll: (vendorTaskId) => Promise.resolve(news[vendorTaskId] ?? running),
  });
  tasks.work(one({ v }));
  const account = await tasks.account(1_000n);
  const start = async () => {
    const id = await tasks.submit({ accountId: account, callbackUrl: "https://receiver.test/" });
    const token = await until(async () => {
      const row = await tasks.row(id);
      return row.state === "running" ? row.vendor_task_id : undefined;
    });
    return { id, token: token ?? "" };
  };
  const [now, soon, late] = [await start(), await start(), await start()];
  Object.assign(answers, { [now.token]: "cancelled", [soon.token]: "requested" });
  const ids = [now.id, soon.id, late.id];
  await tasks.pool.query(
    "update task set cancel_requested = true, next_time = now() where id = any($1)",
    [ids],
  );
  await until(async () => (asked.length === 3 ? true : undefined));
  // Two more looks: the vendor is not asked to stop again.
  const polls = (await tasks.row(soon.id)).poll_count;
  await until(async () => ((await tasks.row(soon.id)).poll_count > polls + 2 ? true : undefined));
  Object.assign(news, { [soon.token]: { status: "cancelled" }, [late.token]: completed });
  expect(await tasks.ended(ids)).toMatchObject([
    { state: "cancelled", cost: "0", error_code: null },
    { state: "cancelled", cost: "0" },
    { state: "completed", cost: "100" },
  ]);
  expect(asked.toSorted()).toEqual([now.token, soon.token, late.token].toSorted());
  expect((await tasks.told(now.id)).at(-1)).toMatchObject({ status: "cancelled", error: null });
  expect(await tasks.balance(account)).toEqual({ available: 900n, held: 0n });
});

test("a cancel request does not take a task from the process that submits it, and is not lost", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  const submitted = Promise.withResolvers<void>();
  const cancelled: string[] = [];
  const v = vendor({
    async submit({ attemptToken }) {
      await submitted.promise;
      return { vendorTaskId: attemptToken };
    },
    cancel(vendorTaskId) {
      cancelled.push(vendorTaskId);
      return Promise.resolve("cancelled");
    },
    poll: () => Promise.resolve(running),
  });
  tasks.work({ ...one({ v }), timings: { pollMs: 600_000, pollMsMax: 600_000 } });
  await until(async () => (v.asked.length === 1 ? true : undefined));
  await tasks.pool.query(
    "update task set cancel_requested = true, next_time = now() where id = $1",
    [id],
  );
  // Another process looks for what is due.
  const other = tasks.work(one({ v }));
  await other.stop();
  submitted.resolve();
  expect(await tasks.ended([id])).toMatchObject([{ state: "cancelled" }]);
  expect([v.asked.length, cancelled.length]).toEqual([1, 1]);
});

test("a task that its vendor ends unasked fails", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  tasks.work(one({ v: vendor({ poll: () => Promise.resolve({ status: "cancelled" }) }) }));
  expect(await tasks.ended([id])).toMatchObject([{ error_code: "upstream_error" }]);
});

test("a task ends at its deadline in every state, and is cancelled at its vendor", async () => {
  const account = await tasks.account();
  const stopped: string[] = [];
  const slow = vendor({
    cancel: (vendorTaskId) => {
      stopped.push(vendorTaskId);
      return Promise.resolve("requested");
    },
    poll: () => Promise.resolve(running),
  });
  const silent = vendor({
    submit: ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new HttpFailure("aborted", "aborted")));
      }),
  });
  const waits = await tasks.submit({ accountId: account, model: "unknown", deadlineMs: 0 });
  const runs = await tasks.submit({ accountId: account });
  tasks.work({ ...one({ slow }), timings: { runMs: 60 } });
  const timedOut = { state: "failed", error_code: "task_timeout", cost: "0" };
  expect(await tasks.ended([waits, runs])).toMatchObject([timedOut, timedOut]);
  expect(stopped).toEqual(slow.asked);
  await tasks.stopAll();
  const submits = await tasks.submit({ accountId: account });
  tasks.work({ ...one({ silent }), timings: { runMs: 60 } });
  expect(await tasks.ended([submits])).toMatchObject([timedOut]);
});

test("R-TSK-9: a stopping process hands its tasks over, and waits for submits under way", async () => {
  const account = await tasks.account();
  const submitted = Promise.withResolvers<void>();
  const polled = Promise.withResolvers<void>();
  const v = vendor({
    async submit({ attemptToken }) {
      if (v.asked.length === 2) await submitted.promise;
      return { vendorTaskId: attemptToken };
    },
    poll: (_id, signal) =>
      new Promise((_resolve, reject) => {
        const abort = () => reject(new HttpFailure("aborted", "aborted"));
        if (signal.aborted) abort();
        signal.addEventListener("abort", abort);
        polled.resolve();
      }),
  });
  const first = await tasks.submit({ accountId: account });
  const worker = tasks.work(one({ v }));
  await polled.promise;
  const second = await tasks.submit({ accountId: account });
  await until(async () => (v.asked.length === 2 ? true : undefined));
  const stopping = worker.stop({ graceMs: 60_000 });
  // The poll is given back at once; the submit is waited for.
  await until(async () => ((await tasks.row(first)).lease_until === null ? true : undefined));
  submitted.resolve();
  await stopping;
  expect(await tasks.row(second)).toMatchObject({ state: "running", lease_until: null });
  expect(worker.underWay()).toBe(0);
  tasks.work(one({ v: vendor() }));
  expect(await tasks.ended([first, second])).toMatchObject([
    { state: "completed" },
    { state: "completed" },
  ]);
  expect(v.asked.length).toBe(2);
});

test("a result that comes after the task's end is recorded, and changes nothing", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  const submitted = Promise.withResolvers<void>();
  const v = vendor({
    async submit() {
      await submitted.promise;
      return { vendorTaskId: "orphan" };
    },
  });
  // It sends no heartbeats, as if it had been paused.
  tasks.work({ ...one({ v }), timings: { leaseMs: 50, heartbeatMs: 600_000 } });
  await until(async () => (v.asked.length === 1 ? true : undefined));
  tasks.work(one({ v }));
  expect(await tasks.ended([id])).toMatchObject([{ error_code: "upstream_submit_unknown" }]);
  submitted.resolve();
  const [event] = await until(async () => {
    const events = await tasks.events(id, "late");
    return events.length > 0 ? events : undefined;
  });
  expect(event?.detail).toEqual({ news: "accepted", vendor: "v", vendorTaskId: "orphan" });
  expect(v.asked.length).toBe(1);
});

test("a result that cannot be fetched is retried where that may help, and then fails the task", async () => {
  const account = await tasks.account(1_000n);
  let tries = 0;
  const results = {
    store: () => Promise.reject(new ResultFailure("refused", "gone", { isFinal: ++tries > 3 })),
  };
  const id = await tasks.submit({ accountId: account });
  tasks.work({ ...one({ v: vendor() }), results, warn: () => {} });
  expect(await tasks.ended([id])).toMatchObject([
    { state: "failed", error_code: "result_unavailable", cost: "0" },
  ]);
  expect(tries).toBe(4);
  expect(await tasks.balance(account)).toEqual({ available: 1_000n, held: 0n });
});
