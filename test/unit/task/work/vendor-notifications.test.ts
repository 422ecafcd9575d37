/**
 * Vendors that send notifications: a notification triggers a poll, and its content is not trusted.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { HttpFailure } from "../../../../src/http/failure.ts";
import { createCallbacks } from "../../../../src/task/work/vendor-notifications.ts";
import type { TaskUpdate, TaskSubmission, VendorTasks } from "../../../../src/provider/task.ts";
import { openTasks, type Tasks, until } from "../worker-harness.ts";
import { completed, one, type TestWorkerOptions, vendor } from "../worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
});
afterAll(() => tasks.close());

const reset = () => Promise.reject(new HttpFailure("reset", "ECONNRESET"));
const running = { status: "running", progress: 10 } as const;
/** No poll happens within a test. */
const rare = { pollMs: 600_000, pollMsMax: 600_000 };
const callbackUrl = (token: string) => `https://gateway.test/callbacks/${token}`;

/** A vendor that calls back, and calls its tasks by the token with "job-" before it. */
function calling(parts: Partial<VendorTasks> = {}) {
  const submissions: TaskSubmission[] = [];
  const checked: string[] = [];
  const { submit } = parts;
  const v = vendor({
    callbacks: {
      taskIdIn: (body) => body.toString() || undefined,
      isOurs(vendorTaskId, token) {
        checked.push(vendorTaskId);
        return Promise.resolve(vendorTaskId === `job-${token}`);
      },
    },
    ...parts,
    submit(submission) {
      submissions.push(submission);
      return (
        submit?.(submission) ?? Promise.resolve({ vendorTaskId: `job-${submission.attemptToken}` })
      );
    },
  });
  return { ...v, submissions, checked };
}

/** Returns the gateway's answers to a vendor's notification. */
function door(v: { readonly tasks: VendorTasks }, onNews?: () => void) {
  return createCallbacks({ pool: tasks.pool, tasksOf: () => v.tasks, onNews });
}

async function start(options: TestWorkerOptions, accountId?: string) {
  const id = await tasks.submit({ accountId: accountId ?? (await tasks.account()) });
  const worker = tasks.work({ callbackUrl, ...options });
  return { id, worker };
}

async function inState(id: string, state: string): Promise<string> {
  const row = await until(async () => {
    const found = await tasks.row(id);
    return found.state === state && found.lease_until === null ? found : undefined;
  });
  return row.attempt_token ?? "";
}

test("a vendor gets a callback address that cannot be guessed", async () => {
  const v = calling();
  const { id } = await start(one({ v }));
  const [row] = await tasks.ended([id]);
  expect(v.submissions.map((each) => each.callbackUrl)).toEqual([
    callbackUrl(row?.attempt_token ?? ""),
  ]);
  expect(row?.attempt_token).toMatch(/^[0-9a-f-]{36}$/);
});

test("vendors get no callback address where the gateway has no public one", async () => {
  const v = calling();
  const id = await tasks.submit({ accountId: await tasks.account() });
  tasks.work(one({ v }));
  await tasks.ended([id]);
  expect(v.submissions[0]).not.toHaveProperty("callbackUrl");
});

test("a callback makes the worker poll the vendor, and its content is not trusted", async () => {
  let news: TaskUpdate = running;
  let polls = 0;
  const v = calling({
    poll: (vendorTaskId) => {
      polls++;
      expect(vendorTaskId).toMatch(/^job-/);
      return Promise.resolve(news);
    },
  });
  const { id, worker } = await start({ ...one({ v }), timings: rare });
  const token = await inState(id, "running");
  const callbacks = door(v, () => worker.wake());
  await callbacks.take(token, Buffer.from("job-of-somebody-else"));
  await until(async () => (polls === 1 ? true : undefined));
  await inState(id, "running");
  news = completed;
  await callbacks.take(token, Buffer.alloc(0));
  expect(await tasks.ended([id])).toMatchObject([
    { state: "completed", vendor_task_id: `job-${token}` },
  ]);
  expect([polls, v.checked]).toEqual([2, []]);
});

test("a callback during a poll is not lost", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<TaskUpdate>();
  const answers = [() => answer.promise, () => Promise.resolve(completed)];
  const v = calling({
    poll: () => {
      asked.resolve();
      return answers.shift()?.() ?? Promise.resolve(completed);
    },
  });
  const { id } = await start({ ...one({ v }), timings: rare });
  const token = await inState(id, "running");
  await door(v).take(token, Buffer.alloc(0));
  await asked.promise;
  await door(v).take(token, Buffer.alloc(0));
  answer.resolve(running);
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
});

test("a vendor inside this process notifies by itself", async () => {
  let isDone = false;
  const v = vendor({ poll: () => Promise.resolve(isDone ? completed : running) });
  const submitted: TaskSubmission[] = [];
  const told = {
    ...v,
    tasks: {
      ...v.tasks,
      submit: (task: TaskSubmission) => {
        submitted.push(task);
        return v.tasks.submit(task);
      },
    },
  };
  const { id } = await start({ ...one({ v: told }), timings: rare });
  await inState(id, "running");
  isDone = true;
  submitted[0]?.onUpdate?.();
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
});

describe("R-TSK-7: a blind submit that got no answer, of a vendor that calls back", () => {
  test("waits, and is found by a callback that the vendor confirms", async () => {
    const v = calling({ submit: reset });
    const { id } = await start({ ...one({ v }), timings: rare });
    const token = await inState(id, "submit_unknown");
    await door(v).take(token, Buffer.from(`job-${token}`));
    expect(await tasks.ended([id])).toMatchObject([
      { state: "completed", vendor_task_id: `job-${token}` },
    ]);
    expect([v.asked.length, v.checked]).toEqual([1, [`job-${token}`]]);
    expect(await tasks.states(id)).toEqual([
      "submitting",
      "submit_unknown",
      "running",
      "finalizing",
      "completed",
    ]);
  });

  test("does not adopt another client's task, and fails in the end", async () => {
    const v = calling({ submit: reset });
    const account = await tasks.account(500n);
    const { id } = await start({ ...one({ v }), timings: { unknownMs: 300 } }, account);
    const token = await inState(id, "submit_unknown");
    await door(v).take(token, Buffer.from("job-of-somebody-else"));
    expect(await tasks.ended([id])).toMatchObject([
      { error_code: "upstream_submit_unknown", cost: "0", is_late_charge_pending: false },
    ]);
    expect([v.asked.length, v.checked]).toEqual([1, ["job-of-somebody-else"]]);
    expect(await tasks.balance(account)).toEqual({ available: 500n, held: 0n });
  });

  test("retries the confirmation where the vendor does not answer", async () => {
    let checks = 0;
    const v = calling({
      submit: reset,
      callbacks: {
        taskIdIn: (body) => body.toString(),
        isOurs: () => (checks++ === 0 ? reset() : Promise.resolve(true)),
      },
    });
    const { id } = await start({ ...one({ v }), warn: () => {} });
    const token = await inState(id, "submit_unknown");
    await door(v).take(token, Buffer.from(`job-${token}`));
    expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
    expect(checks).toBe(2);
  });

  test("fails at once where its vendor has no callbacks", async () => {
    const v = vendor({ submit: reset });
    const { id } = await start(one({ v }));
    expect(await tasks.ended([id])).toMatchObject([{ error_code: "upstream_submit_unknown" }]);
  });
});

test("callbacks with unknown tokens are refused", async () => {
  const { isKnown, take } = door(calling());
  const foreign = "0199a0b0-1111-4222-8333-444455556666";
  expect(await Promise.all(["", "x", foreign].map((token) => isKnown(token)))).toEqual([
    false,
    false,
    false,
  ]);
  await take(foreign, Buffer.from("job"));
});
