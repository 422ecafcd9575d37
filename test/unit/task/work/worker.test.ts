import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { HttpFailure } from "../../../../src/http/failure.ts";
import type { VendorAlarm, WorkerOptions } from "../../../../src/task/work/worker-options.ts";
import { type TaskUpdate, TaskRefused, VendorReplyError } from "../../../../src/provider/task.ts";
import { openTasks, type Tasks, until } from "../worker-harness.ts";
import { completed, one, vendor } from "../worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
});
afterAll(() => tasks.close());

const callbackUrl = "https://receiver.test/hook";

/** A vendor with one update after the other; the last one repeats. */
function says(...news: TaskUpdate[]) {
  return () => Promise.resolve((news.length > 1 ? news.shift() : news[0]) ?? completed);
}

test("R-TSK-9: a worker submits, polls, fetches, charges and notifies a task", async () => {
  const account = await tasks.account(1_000n);
  const id = await tasks.submit({ accountId: account, callbackUrl, images: 3 });
  const news: TaskUpdate[] = [
    { status: "running", progress: 30 },
    { status: "running", progress: 20 },
    { status: "running", progress: 60 },
    completed,
  ];
  const v = vendor({ poll: says(...news) });
  tasks.work(one({ v }));
  const [row] = await tasks.ended([id]);
  expect(row).toMatchObject({
    state: "completed",
    progress: 100,
    vendor: "v",
    vendor_model: "m@v",
    cost: "300",
    lease_until: null,
    result: {
      files: [
        {
          url: `https://files.test/${id}/https%3A%2F%2Fvendor.test%2Fa.png`,
          contentType: "image/png",
        },
      ],
    },
  });
  expect(row?.expire_time?.getTime()).toBe(Date.parse("2030-01-01T00:00:00Z"));
  expect(v.asked).toEqual([row?.attempt_token]);
  expect(await tasks.states(id)).toEqual(["submitting", "running", "finalizing", "completed"]);
  // Progress never decreases, and each value is reported once.
  expect((await tasks.told(id)).map(({ progress }) => progress)).toEqual([1, 30, 60, 99, 100]);
  expect((await tasks.told(id)).at(-1)).toMatchObject({
    status: "completed",
    callback_id: id,
    result_url: row?.result?.files[0]?.url,
    usage: { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
  });
  expect(await tasks.balance(account)).toEqual({ available: 700n, held: 0n });
  const { rows } = await tasks.pool.query("select * from call where id = $1", [id]);
  expect(rows).toMatchObject([
    {
      path: "/api/ai/tasks",
      status: 200,
      ending: 1,
      cost: "300",
      held: "300",
      images: 3,
      charged: true,
    },
  ]);
});

test("a vendor that reports more than the hold is paid the hold, and the rest is reported (R-MON-15)", async () => {
  const account = await tasks.account(1_000n);
  const id = await tasks.submit({ accountId: account, images: 3 });
  if (completed.status !== "completed") throw new Error("unreachable");
  const outcome = { ...completed.outcome, units: { images: 1_000_000 } };
  const v = vendor({ poll: says({ status: "completed", outcome }) });
  const onImplausible = vi.fn<NonNullable<WorkerOptions["onImplausible"]>>();
  const onEnd = vi.fn<NonNullable<WorkerOptions["onEnd"]>>();
  tasks.work({ ...one({ v }), onImplausible, onEnd });
  const [row] = await tasks.ended([id]);
  // The task and its record show what is charged.
  expect(row).toMatchObject({ state: "completed", cost: "300", usage: { images: 3 } });
  await vi.waitFor(() => expect(onEnd).toHaveBeenCalledOnce());
  expect(onEnd.mock.lastCall?.[1]).toMatchObject({ images: 3 });
  await vi.waitFor(() => expect(onImplausible).toHaveBeenCalledOnce());
  const [task, { usage, lossNanos }] = onImplausible.mock.lastCall ?? [{}, {}];
  expect({ task, usage, lossNanos }).toMatchObject({
    task: { id },
    usage: { images: 1_000_000 },
    lossNanos: 99_999_700n,
  });
});

test("a task whose model is removed from the configuration while it runs is charged as requested", async () => {
  const account = await tasks.account(1_000n);
  const id = await tasks.submit({ accountId: account, images: 3 });
  tasks.work(one({ v: vendor({ poll: says({ status: "running", progress: 30 }) }) }));
  await until(async () => ((await tasks.row(id)).progress === 30 ? true : undefined));
  await tasks.stopAll();
  tasks.work({ vendors: new Map([["v", vendor()]]), config: { models: new Map() } });
  const [row] = await tasks.ended([id]);
  expect(row).toMatchObject({ state: "completed", cost: "300" });
  expect(await tasks.balance(account)).toEqual({ available: 700n, held: 0n });
});

test("a vendor that answers a submit with its result is not polled", async () => {
  const account = await tasks.account();
  const id = await tasks.submit({ accountId: account });
  const bytes = Buffer.from("png");
  const outcome = {
    files: [{ bytes, contentType: "image/png" }],
    usage: { inputTokens: 4, outputTokens: 5 },
    units: { images: 7 },
  };
  const v = vendor({ submit: () => Promise.resolve({ done: outcome }) });
  tasks.work(one({ v }));
  const [row] = await tasks.ended([id]);
  // It made seven images although one was requested and held: the customer pays for the hold.
  expect(row).toMatchObject({
    state: "completed",
    cost: "100",
    usage: { ...outcome.usage, images: 1 },
  });
  expect(row?.result?.files[0]?.url).toMatch(/png$/);
  expect(await tasks.states(id)).toEqual(["submitting", "finalizing", "completed"]);
});

test.each([
  ["content_rejected", 400, 3],
  ["invalid_parameters", 400, 3],
  ["upstream_error", 502, 4],
] as const)(
  "R-TSK-6: a submit that is refused with %s costs nothing",
  async (code, status, ending) => {
    const account = await tasks.account(500n);
    const id = await tasks.submit({ accountId: account, callbackUrl });
    const v = vendor({ submit: () => Promise.reject(new TaskRefused(code, "not\0this")) });
    tasks.work(one({ v }));
    const [row] = await tasks.ended([id]);
    expect(row).toMatchObject({
      state: "failed",
      error_code: code,
      error: "not\ufffdthis",
      cost: "0",
    });
    expect(await tasks.told(id)).toMatchObject([
      { status: "failed", error_code: code, error: "not\ufffdthis", progress: 0 },
    ]);
    expect(await tasks.balance(account)).toEqual({ available: 500n, held: 0n });
    const { rows } = await tasks.pool.query("select * from call where id = $1", [id]);
    expect(rows).toMatchObject([{ status, ending, error_code: code, cost: "0", charged: false }]);
  },
);

test("R-TSK-6: a task that fails at the vendor costs nothing", async () => {
  const account = await tasks.account(500n);
  const id = await tasks.submit({ accountId: account });
  const error = { code: "content_rejected", message: "unsafe" } as const;
  tasks.work(one({ v: vendor({ poll: says({ status: "failed", error }) }) }));
  expect(await tasks.ended([id])).toMatchObject([
    { state: "failed", error_code: "content_rejected", error: "unsafe", cost: "0" },
  ]);
  expect(await tasks.balance(account)).toEqual({ available: 500n, held: 0n });
});

test("failed polls do not fail a task", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  let polls = 0;
  const poll = () => {
    polls++;
    if (polls <= 12) return Promise.reject(new HttpFailure("reset", "ECONNRESET"));
    return Promise.resolve(completed);
  };
  const warned: string[] = [];
  const warn = (message: string) => void warned.push(message);
  const silent: unknown[] = [];
  const onSilent = (name: string, error: unknown) => void silent.push(name, error);
  tasks.work({ ...one({ v: vendor({ poll }) }), warn, onSilent });
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
  expect(warned).toEqual(["a vendor does not report the state of a task"]);
  expect(silent).toEqual(["v", expect.any(HttpFailure)]);
});

test("an unreachable vendor or one without capacity is followed by the next one", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  const refused = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  const away = vendor({
    submit: () => Promise.reject(new HttpFailure("connect", "ECONNREFUSED", refused)),
  });
  const full = vendor({
    submit: () => Promise.reject(new TaskRefused("upstream_error", "later", true)),
  });
  const outcomes: string[] = [];
  const onSubmit = (name: string, outcome: string) => void outcomes.push(`${name} ${outcome}`);
  tasks.work({ ...one({ away, full, good: vendor() }), onSubmit });
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", vendor: "good" }]);
  expect(outcomes).toEqual(["away unsent", "full later", "good accepted"]);
});

test("R-ERR-3: a vendor that refuses the operator's own account raises an alarm", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  const broke = vendor({
    submit: () => {
      const about = { fault: "money" } as const;
      return Promise.reject(new TaskRefused("upstream_error", "later", true, about));
    },
  });
  const answers: (() => Promise<TaskUpdate>)[] = [
    () => Promise.reject(new VendorReplyError(401, "no", "credential")),
    () => Promise.reject(new VendorReplyError(500, "no")),
  ];
  const good = vendor({ poll: () => answers.shift()?.() ?? Promise.resolve(completed) });
  const alarms: string[] = [];
  const onAlarm = (alarm: VendorAlarm) => void alarms.push(`${alarm.vendor} ${alarm.fault}`);
  tasks.work({ ...one({ broke, good }), onAlarm, warn: () => {} });
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", vendor: "good" }]);
  expect(alarms).toEqual(["broke money", "good credential"]);
});

test("R-LIM-1: a vendor's retry-after is respected", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  const about = { retryAfterSeconds: 3_600 };
  const refused = new TaskRefused("upstream_error", "later", true, about);
  const v = vendor({ submit: () => Promise.reject(refused) });
  tasks.work(one({ v }));
  const row = await until(async () => {
    const found = await tasks.row(id);
    return found.poll_count > 0 ? found : undefined;
  });
  expect(row.state).toBe("queued");
  expect(row.next_time.getTime() - Date.now()).toBeGreaterThan(300_000);
});

test("a task that no vendor has capacity for is queued again", async () => {
  const id = await tasks.submit({ accountId: await tasks.account() });
  let tries = 0;
  const v = vendor({
    submit: ({ attemptToken }) =>
      ++tries < 4
        ? Promise.reject(new TaskRefused("upstream_error", "later", true))
        : Promise.resolve({ vendorTaskId: attemptToken }),
  });
  tasks.work(one({ v }));
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed" }]);
  expect(new Set(v.asked).size).toBe(1);
  expect(await tasks.states(id)).toEqual([
    ...Array.from({ length: 3 }, () => ["submitting", "queued"]).flat(),
    "submitting",
    "running",
    "finalizing",
    "completed",
  ]);
});

test("state, money and webhook of an end are one transaction", async () => {
  const account = await tasks.account(500n);
  const id = await tasks.submit({ accountId: account, callbackUrl });
  let isBroken = true;
  const notify = async (): Promise<void> => {
    if (isBroken) throw new Error("the webhook cannot be enqueued");
  };
  const warned: unknown[] = [];
  const worker = tasks.work({
    ...one({
      v: vendor({ submit: () => Promise.reject(new TaskRefused("upstream_error", "no")) }),
    }),
    notify,
    timings: { leaseMs: 100, heartbeatMs: 1_000 },
    warn: (_message, { err }) => void warned.push(err),
  });
  await until(async () => (warned.length > 0 ? true : undefined));
  expect(await tasks.row(id)).toMatchObject({ state: "submitting", cost: null });
  expect(await tasks.balance(account)).toEqual({ available: 400n, held: 100n });
  isBroken = false;
  // Its lease ends; it is blind, so it is not asked again.
  expect(await tasks.ended([id])).toMatchObject([{ error_code: "upstream_submit_unknown" }]);
  await worker.stop();
});

test("long parameters are read only by the steps that need them", async () => {
  const account = await tasks.account();
  const picture = randomBytes(40_000).toString("base64");
  const params = { images: 2, picture };
  const id = await tasks.submit({ accountId: account, params, images: 2, callbackUrl });
  const asked: unknown[] = [];
  let polls = 0;
  const v = vendor({
    submit({ params: given, attemptToken }) {
      asked.push(given);
      return Promise.resolve({ vendorTaskId: attemptToken });
    },
    poll: () => Promise.resolve(++polls < 3 ? { status: "running", progress: 10 } : completed),
  });
  const queries = vi.spyOn(tasks.pool, "query");
  tasks.work(one({ v }));
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", cost: "200" }]);
  expect(asked).toEqual([params]);
  expect(polls).toBe(3);
  // For its submit and for its charge, and for none of the looks between.
  const texts = (queries.mock.calls as unknown as [string | { text: string }][]).map(([query]) =>
    typeof query === "string" ? query : query.text,
  );
  const reads = texts.filter((text) => text.startsWith("select params"));
  expect(reads).toHaveLength(2);
  queries.mockRestore();
});

test("a call record that the database refuses loses neither the result of its task nor the charge", async () => {
  await tasks.pool.query(`create function refuse_model() returns trigger language plpgsql as
    $$ begin if new.model <> '' then raise exception 'value out of range' using errcode = '22003'; end if;
      return new; end $$`);
  await tasks.pool.query(
    "create trigger refuse_model before insert on call for each row execute function refuse_model()",
  );
  onTestFinished(async () => {
    await tasks.pool.query("drop function refuse_model cascade");
  });
  const account = await tasks.account(1_000n);
  const id = await tasks.submit({ accountId: account });
  const done = { files: [{ bytes: Buffer.from("picture"), contentType: "image/png" }] };
  const v = vendor({ submit: () => Promise.resolve({ done }) });
  const told: string[] = [];
  tasks.work({ ...one({ v }), warn: (message) => void told.push(message) });
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", cost: "100" }]);
  expect(await tasks.balance(account)).toEqual({ available: 900n, held: 0n });
  const { rows } = await tasks.pool.query("select model, cost from call where id = $1", [id]);
  expect(rows).toEqual([{ model: "", cost: "100" }]);
  expect(told).toEqual(["the end of a task was refused; trying with less of its call record"]);
});
