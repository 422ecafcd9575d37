/** Vendors' charges for tasks that have already ended here: booked once, never to the customer. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { HttpFailure } from "../../../src/http/failure.ts";
import { ResultFailure } from "../../../src/result/result.ts";
import { createCallbacks } from "../../../src/task/work/vendor-notifications.ts";
import type { TaskUpdate, VendorTasks } from "../../../src/provider/task.ts";
import { openTasks, type Tasks, until } from "./worker-harness.ts";
import { completed, one, type TestWorkerOptions, vendor } from "./worker-setup.ts";

let tasks: Tasks;
let account: string;
let costs: [string, bigint][];
beforeAll(async () => void (tasks = await openTasks()));
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
  // Whatever came later: the customer has what it had.
  expect(await tasks.balance(account)).toEqual({ available: 500n, held: 0n });
});
afterAll(() => tasks.close());

const running = { status: "running", progress: 10 } as const;
const failed: TaskUpdate = { status: "failed", error: { code: "upstream_error", message: "no" } };
const reset = () => Promise.reject(new HttpFailure("reset", "ECONNRESET"));

/** Submits and works; a picture costs the operator 7 nano-USD. */
async function start(options: TestWorkerOptions, images = 1): Promise<string> {
  account = await tasks.account(500n);
  costs = [];
  const id = await tasks.submit({ accountId: account, images });
  work(options);
  return id;
}

function work(options: TestWorkerOptions): void {
  tasks.work({
    warn: () => {},
    vendorCost: (_task, { images = 0 }) => 7n * BigInt(images),
    onLateCost: ({ id }, nanos) => void costs.push([id, nanos]),
    ...options,
  });
}

/** Waits until no worker processes a task any longer. */
function settled(id: string): Promise<true> {
  return until(async () => {
    const { is_late_charge_pending: isLateChargePending, finish_time: end } = await tasks.row(id);
    return end !== null && !isLateChargePending ? true : undefined;
  });
}

/** Returns the ledger entries of a task, and its record. */
async function booked(id: string) {
  const { rows: entries } = await tasks.pool.query<{ account: number; amount: string }>(
    `select account, amount from ledger_entry where (txn_id = $1 or call_id = $1) and account > 6
     order by account`,
    [id],
  );
  const { rows } = await tasks.pool.query<{ cost: string; vendor_cost: string | null }>(
    "select cost, vendor_cost from call where id = $1",
    [id],
  );
  return { entries: entries.map((row) => [row.account, row.amount]), record: rows[0] };
}

const sevens = {
  entries: [
    [7, "-7"],
    [8, "7"],
  ],
  record: { cost: "0", vendor_cost: "7" },
};
const nothing = { entries: [], record: { cost: "0", vendor_cost: null } };

describe("R-TSK-6: a task that ran out of time while its vendor went on", () => {
  /** A task that is stopped here after 50 ms, and reported on demand. */
  async function overdue(last: TaskUpdate, images = 1): Promise<string> {
    let news: TaskUpdate = running;
    const v = vendor({ poll: () => Promise.resolve(news) });
    const id = await start({ ...one({ v }), timings: { runMs: 50 } }, images);
    expect(await tasks.ended([id])).toMatchObject([{ error_code: "task_timeout" }]);
    expect(await booked(id)).toEqual(nothing);
    news = last;
    await settled(id);
    return id;
  }

  test("is the operator's cost where the vendor completed it", async () => {
    const id = await overdue(completed);
    expect(await booked(id)).toEqual(sevens);
    await vi.waitFor(() => expect(costs).toEqual([[id, 7n]]));
    expect(await tasks.row(id)).toMatchObject({ state: "failed", cost: "0" });
  });

  test("costs nothing where the vendor did not complete it", async () => {
    expect(await booked(await overdue(failed))).toEqual(nothing);
    expect(costs).toEqual([]);
  });

  test("is abandoned after a day, with a warning", async () => {
    const told: string[] = [];
    const v = vendor({ poll: () => Promise.resolve(running) });
    const id = await start({
      ...one({ v }),
      timings: { runMs: 50, lateChargeMs: 100 },
      warn: (message) => void told.push(message),
    });
    await settled(id);
    expect(told).toContain("the vendor's cost of a task is unknown: compare with its invoice");
    expect(await booked(id)).toEqual(nothing);
  });

  test("is polled by another process where the first one died, and booked once", async () => {
    let news: TaskUpdate = running;
    const v = vendor({ poll: () => Promise.resolve(news) });
    const id = await start({ ...one({ v }), timings: { runMs: 50 } });
    await tasks.ended([id]);
    await tasks.stopAll();
    news = completed;
    for (let count = 0; count < 3; count++) work(one({ v }));
    await settled(id);
    await tasks.stopAll();
    // Even if it was started again.
    await tasks.pool.query(
      "update task set is_late_charge_pending = true, next_time = now() where id = $1",
      [id],
    );
    work(one({ v }));
    await settled(id);
    expect(await booked(id)).toEqual(sevens);
    await vi.waitFor(() => expect(costs).toEqual([[id, 7n]]));
  });
});

describe("R-TSK-7: a vendor that had a task all the same", () => {
  /** One whose answers to submits are lost. */
  function lossy(parts: Partial<VendorTasks> = {}) {
    return vendor({
      submit: reset,
      callbacks: {
        taskIdIn: (body) => body.toString(),
        isOurs: (id, token) => Promise.resolve(id === `job-${token}`),
      },
      ...parts,
    });
  }

  test("calls back after the end: its charge is booked, once for all callbacks", async () => {
    const v = lossy();
    const id = await start(one({ v }));
    const [row] = await tasks.ended([id]);
    expect(row).toMatchObject({ error_code: "upstream_submit_unknown" });
    const token = row?.attempt_token ?? "";
    const { take } = createCallbacks({ pool: tasks.pool, tasksOf: () => v.tasks });
    await take(token, Buffer.from(`job-${token}`));
    await settled(id);
    expect(await booked(id)).toEqual(sevens);
    await take(token, Buffer.from(`job-${token}`));
    await take(token, Buffer.from("job-of-somebody-else"));
    await settled(id);
    expect(await booked(id)).toEqual(sevens);
    await vi.waitFor(() => expect(costs).toEqual([[id, 7n]]));
  });

  test("calls back about another client's task: nothing is booked", async () => {
    const v = lossy();
    const id = await start(one({ v }));
    const [row] = await tasks.ended([id]);
    const { take } = createCallbacks({ pool: tasks.pool, tasksOf: () => v.tasks });
    await take(row?.attempt_token ?? "", Buffer.from("job-of-somebody-else"));
    await settled(id);
    expect(await booked(id)).toEqual(nothing);
  });

  test.each([
    ["that it is at work", { vendorTaskId: "late" }],
    [
      "what it made",
      { vendorTaskId: "late", done: completed.status === "completed" && completed.outcome },
    ],
  ] as const)("answers after the end %s", async (_what, answer) => {
    const submitted = Promise.withResolvers<void>();
    const v = vendor({
      async submit() {
        await submitted.promise;
        return answer;
      },
    });
    // It sends no heartbeats, as if it had been paused.
    const id = await start({ ...one({ v }), timings: { leaseMs: 50, heartbeatMs: 600_000 } });
    await until(async () => (v.asked.length === 1 ? true : undefined));
    work(one({ v }));
    expect(await tasks.ended([id])).toMatchObject([{ error_code: "upstream_submit_unknown" }]);
    submitted.resolve();
    await until(async () => (costs.length > 0 ? true : undefined));
    expect(await booked(id)).toEqual(sevens);
    await vi.waitFor(() => expect(costs).toEqual([[id, 7n]]));
  });
});

test("R-TSK-6: a result that cannot be fetched is the operator's cost, booked at the task's end", async () => {
  const results = {
    store: () => Promise.reject(new ResultFailure("refused", "gone", { isFinal: true })),
  };
  const id = await start({ ...one({ v: vendor() }), results });
  expect(await tasks.ended([id])).toMatchObject([{ error_code: "result_unavailable" }]);
  expect(await booked(id)).toEqual(sevens);
  expect(costs).toEqual([]);
});

test("a task that its vendor has cancelled is not polled for late charges", async () => {
  const v = vendor({
    poll: () => Promise.resolve(running),
    cancel: () => Promise.resolve("cancelled"),
  });
  const id = await start({ ...one({ v }), timings: { runMs: 50 } });
  expect(await tasks.ended([id])).toMatchObject([
    { error_code: "task_timeout", is_late_charge_pending: false },
  ]);
  expect(await booked(id)).toEqual(nothing);
});
