/**
 * R-TSK-6: what a cancelled task costs, in every state and by what its vendor says, to the
 * nano-dollar.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { PriceConfig } from "../../../src/config/config.ts";
import { type Cancel, createCancel } from "../../../src/task/work/cancel.ts";
import type { TaskState } from "../../../src/task/state.ts";
import { createTaskStore } from "../../../src/task/store.ts";
import type { CancelAnswer, TaskUpdate, ReportedCost } from "../../../src/provider/task.ts";
import { openTasks, type Tasks, until } from "./worker-harness.ts";
import { completed, one, price, vendor } from "./worker-setup.ts";

let tasks: Tasks;
let cancel: Cancel;
beforeAll(async () => {
  tasks = await openTasks();
  const { pool } = tasks;
  cancel = createCancel({ pool, store: createTaskStore(pool), canStop: () => true });
});
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
});
afterAll(() => tasks.close());

/** Vendor and price of a test; images cost 100 nano-USD. */
interface Case {
  readonly answer?: CancelAnswer;
  readonly reportedCost?: ReportedCost;
  /** In nano-USD, added once. Default: none. */
  readonly request?: bigint;
  readonly isCancelBilled?: boolean;
}

const running: TaskUpdate = { status: "running", progress: 10 };

/** A task of three pictures, which is cancelled while its vendor makes it. */
async function cancelRunning({
  answer = "cancelled",
  reportedCost,
  request,
  isCancelBilled = true,
}: Case) {
  const accountId = await tasks.account(1_000n);
  const id = await tasks.submit({ accountId, images: 3, isCancelBilled, callbackUrl: receiver });
  let news = running;
  const asked: string[] = [];
  const v = vendor({
    cancel(vendorTaskId) {
      asked.push(vendorTaskId);
      news =
        answer === "too_late"
          ? completed
          : { status: "cancelled", ...(reportedCost && { reportedCost }) };
      return Promise.resolve(answer);
    },
    poll: () => Promise.resolve(news),
  });
  const charged: PriceConfig = { ...price, request };
  const vendorCost = (_task: unknown, { images = 0 }) => BigInt(images) * 7n;
  tasks.work({ ...one({ v }), findPrice: () => Promise.resolve(charged), vendorCost });
  await until(async () => ((await tasks.row(id)).state === "running" ? true : undefined));
  expect(await cancel(id, accountId)).toMatchObject({ cancel_requested: true });
  const [row] = await tasks.ended([id]);
  expect(asked).toHaveLength(1);
  return { accountId, id, row };
}

const receiver = "https://receiver.test/";
const two: ReportedCost = { units: { images: 2 } };

describe("a running task that is cancelled costs", () => {
  test.each<[string, Case, number, number]>([
    ["nothing where its model does not say so", { isCancelBilled: false }, 0, 0],
    [
      "nothing then, whatever its vendor took: that is the operator's",
      { isCancelBilled: false, answer: "requested", reportedCost: { units: { images: 2 } } },
      0,
      14,
    ],
    ["nothing where its vendor took nothing", {}, 0, 0],
    ["what its vendor says that it took", { reportedCost: { units: { images: 1 } } }, 100, 7],
    ["the same where it is told later", { answer: "requested", reportedCost: two }, 200, 14],
    ["never more than was held", { reportedCost: { units: { images: 9 } } }, 300, 63],
    ["nothing for what was asked for but not made", { reportedCost: {} }, 0, 0],
    ["its request where its vendor took anything", { reportedCost: {}, request: 30n }, 30, 0],
    ["its request beside the rest", { reportedCost: two, request: 30n }, 230, 14],
    ["not its request where its vendor took nothing", { request: 30n }, 0, 0],
  ])("a running task that is cancelled costs %s", async (_, given, cost, vendorCost) => {
    const { accountId, id, row } = await cancelRunning(given);
    expect(row).toMatchObject({ state: "cancelled", cost: String(cost), error_code: null });
    const available = 1_000n - BigInt(cost);
    expect(await tasks.balance(accountId)).toEqual({ available, held: 0n });
    const isCharged = given.isCancelBilled !== false && given.reportedCost !== undefined;
    const { rows } = await tasks.pool.query("select * from call where id = $1", [id]);
    expect(rows).toMatchObject([
      {
        cost: String(cost),
        held: "300",
        ending: CallEnding.CANCELLED,
        status: 499,
        charged: isCharged,
        vendor_cost: given.reportedCost === undefined ? null : String(vendorCost),
      },
    ]);
    expect((await tasks.told(id)).at(-1)).toMatchObject({ status: "cancelled", error: null });
  });

  test("its full price where the cancel was too late and it completed", async () => {
    const { accountId, row } = await cancelRunning({ answer: "too_late" });
    expect(row).toMatchObject({ state: "completed", cost: "300" });
    expect(await tasks.balance(accountId)).toEqual({ available: 700n, held: 0n });
  });

  test("what its vendor reports late, once it answers again", async () => {
    const accountId = await tasks.account(1_000n);
    const id = await tasks.submit({ accountId, images: 3, isCancelBilled: true });
    let isStopped = false;
    let polls = 0;
    const asked: string[] = [];
    const v = vendor({
      cancel(vendorTaskId) {
        asked.push(vendorTaskId);
        isStopped = true;
        return Promise.resolve("cancelled");
      },
      poll() {
        if (!isStopped) return Promise.resolve(running);
        if (polls++ < 3) return Promise.reject(new Error("not now"));
        return Promise.resolve({ status: "cancelled", reportedCost: two });
      },
    });
    tasks.work({ ...one({ v }), warn: () => {} });
    await until(async () => ((await tasks.row(id)).state === "running" ? true : undefined));
    await cancel(id, accountId);
    expect(await tasks.ended([id])).toMatchObject([{ state: "cancelled", cost: "200" }]);
    expect([asked.length, polls]).toEqual([1, 4]);
    expect(await tasks.balance(accountId)).toEqual({ available: 800n, held: 0n });
  });
});

test("R-TSK-5: a queued task that is cancelled costs nothing, whatever its model says", async () => {
  const accountId = await tasks.account(1_000n);
  const id = await tasks.submit({ accountId, images: 3, isCancelBilled: true });
  expect(await cancel(id, accountId)).toMatchObject({ state: "cancelled", cost: "0" });
  expect(await tasks.balance(accountId)).toEqual({ available: 1_000n, held: 0n });
});

test("a task that is cancelled during its submit costs what its vendor charged once it had it", async () => {
  const accountId = await tasks.account(1_000n);
  const id = await tasks.submit({ accountId, images: 3, isCancelBilled: true });
  const submitted = Promise.withResolvers<void>();
  const v = vendor({
    async submit({ attemptToken }) {
      await submitted.promise;
      return { vendorTaskId: attemptToken };
    },
    cancel: () => Promise.resolve("cancelled"),
    poll: () => Promise.resolve({ status: "cancelled", reportedCost: two }),
  });
  tasks.work(one({ v }));
  await until(async () => (v.asked.length === 1 ? true : undefined));
  expect(await cancel(id, accountId)).toMatchObject({ state: "submitting" });
  submitted.resolve();
  expect(await tasks.ended([id])).toMatchObject([{ state: "cancelled", cost: "200" }]);
  expect(await tasks.balance(accountId)).toEqual({ available: 800n, held: 0n });
});

test.each<[TaskState, number, string]>([
  ["finalizing", 0, "result = null"],
  ["completed", 300, `result = '{"files":[]}', progress = 100, finish_time = now(), cost = 300`],
  ["failed", 0, "error_code = 'e', error = 'e', finish_time = now(), cost = 0"],
  ["cancelled", 100, "finish_time = now(), cost = 100"],
])("one that is %s stays as it is", async (state, cost, set) => {
  const accountId = await tasks.account(1_000n);
  const id = await tasks.submit({ accountId, images: 3, isCancelBilled: true });
  // A row alone, with its hold as it was: nothing here may move money.
  await tasks.pool.query(`update task set state = $2, ${set} where id = $1`, [id, state]);
  const before = await tasks.row(id);
  const asking = cancel(id, accountId);
  if (state === "finalizing") await expect(asking).rejects.toThrow(/can no longer be cancelled/);
  else expect(await asking).toMatchObject({ state, cost: String(cost) });
  expect(await tasks.row(id)).toEqual(before);
  expect(await tasks.balance(accountId)).toEqual({ available: 700n, held: 300n });
});

test("R-TSK-6: the database takes no charge for a cancelled task that was free", async () => {
  const id = await tasks.submit({ accountId: await tasks.account(1_000n) });
  const end = "update task set state = 'cancelled', cost = 1, finish_time = now() where id = $1";
  await expect(tasks.pool.query(end, [id])).rejects.toThrow(/task_cost_check/);
});
