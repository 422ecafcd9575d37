/** TEXT tasks at work: a vendor of text is called once, and its caller can stop it. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { PriceConfig } from "../../../src/config/config.ts";
import { HttpFailure } from "../../../src/http/failure.ts";
import type { TextTaskRequest, TextRunner } from "../../../src/calls/adapters/text-task.ts";
import { TaskRefused, TaskStopped } from "../../../src/provider/task.ts";
import { openTasks, type Tasks, until } from "./worker-harness.ts";
import { model, type TestWorkerOptions } from "./worker-setup.ts";

let tasks: Tasks;
beforeAll(async () => void (tasks = await openTasks()));
afterEach(async () => {
  await tasks.stopAll();
  await tasks.expectClean();
});
afterAll(() => tasks.close());

/** 2 and 5 nano-USD a token. */
const price: PriceConfig = {
  input: 2_000_000n,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: 5_000_000n,
  image: undefined,
  second: undefined,
  request: undefined,
};
const params = { prompt: "Hello" };

/** A worker that knows one model of text at these vendors. */
function texts(run: TextRunner, ...names: string[]): TestWorkerOptions {
  const vendors = names.length === 0 ? ["v"] : names;
  const text = { ...model("t", vendors), type: ModelType.TEXT, maxOutputTokens: 100 };
  return {
    vendors: new Map(),
    config: { models: new Map([["t", text]]) },
    text: { run, vendors: new Map(vendors.map((name) => [name, { maxInFlight: undefined }])) },
    findPrice: () => Promise.resolve(price),
  };
}

/** Submits one; its hold is 100 nano-USD. */
async function submit(callbackUrl?: string, isCancelBilled = false) {
  const accountId = await tasks.account(1_000n);
  const task = { accountId, model: "t", type: ModelType.TEXT, params, isCancelBilled };
  const id = await tasks.submit({ ...task, ...(callbackUrl && { callbackUrl }) });
  return { accountId, id };
}

const usage = { inputTokens: 10, outputTokens: 4 };

test("R-TSK-9: a TEXT task is generated, charged by its tokens, and notified", async () => {
  const { accountId, id } = await submit("https://receiver.test/hook");
  const asked: TextTaskRequest[] = [];
  const run: TextRunner = (ask) => {
    asked.push(ask);
    return Promise.resolve({ vendorTaskId: "req_1", done: { files: [], text: "Hi", usage } });
  };
  tasks.work(texts(run));
  const [row] = await tasks.ended([id]);
  expect(row).toMatchObject({
    state: "completed",
    vendor: "v",
    vendor_task_id: "req_1",
    cost: "40",
    result: { files: [], text: "Hi" },
    expire_time: null,
  });
  expect(asked).toMatchObject([{ params, route: { vendor: "v", model: "t@v" } }]);
  expect((await tasks.told(id)).at(-1)).toMatchObject({
    status: "completed",
    result_content: "Hi",
    result_url: null,
    usage: { promptTokens: 10, completionTokens: 4, totalTokens: 14 },
  });
  expect(await tasks.balance(accountId)).toEqual({ available: 960n, held: 0n });
  const { rows } = await tasks.pool.query("select * from call where id = $1", [id]);
  expect(rows).toMatchObject([
    { input_tokens: 10, output_tokens: 4, cost: "40", usage_source: 1, charged: true },
  ]);
});

test("a text that is too long for a webhook has a file, and is complete in the poll", async () => {
  const { id } = await submit("https://receiver.test/hook");
  const text = "x".repeat(300 * 1024);
  const files = [{ bytes: Buffer.from("x"), contentType: "text/plain" }];
  tasks.work(texts(() => Promise.resolve({ done: { files, text, usage } })));
  const [row] = await tasks.ended([id]);
  expect(row?.result?.text).toBe(text);
  expect((await tasks.told(id)).at(-1)).toMatchObject({
    result_content: null,
    result_url: `https://files.test/${id}/x`,
  });
});

test.each([
  ["content_rejected", "no"],
  ["invalid_parameters", "wrong"],
  ["upstream_error", "broken"],
] as const)("R-TSK-10: a refusal ends the task as %s, free of charge", async (code, message) => {
  const { accountId, id } = await submit();
  tasks.work(texts(() => Promise.reject(new TaskRefused(code, message))));
  const [row] = await tasks.ended([id]);
  expect(row).toMatchObject({ state: "failed", error_code: code, error: message, cost: "0" });
  expect(await tasks.balance(accountId)).toEqual({ available: 1_000n, held: 0n });
});

test("a text vendor without capacity is followed by the next one", async () => {
  const { id } = await submit();
  const asked: string[] = [];
  const run: TextRunner = ({ route: { vendor } }) => {
    asked.push(vendor);
    return vendor === "full"
      ? Promise.reject(new TaskRefused("upstream_error", "busy", true))
      : Promise.resolve({ done: { files: [], text: "Hi", usage } });
  };
  tasks.work(texts(run, "full", "free"));
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", vendor: "free" }]);
  expect(asked).toEqual(["full", "free"]);
});

test("R-TSK-7: a text vendor that does not answer is never called again", async () => {
  const { accountId, id } = await submit();
  let count = 0;
  const run: TextRunner = () => {
    count++;
    return Promise.reject(new HttpFailure("reset", "reset"));
  };
  tasks.work(texts(run));
  expect(await tasks.ended([id])).toMatchObject([
    { state: "failed", error_code: "upstream_submit_unknown", cost: "0" },
  ]);
  expect(count).toBe(1);
  expect(await tasks.balance(accountId)).toEqual({ available: 1_000n, held: 0n });
});

test("R-TSK-7: a text whose process died during the submit is not submitted again", async () => {
  const { accountId, id } = await submit();
  await tasks.pool.query(
    `update task set state = 'submitting', fence = fence + 1, vendor = 'v', vendor_model = 't@v',
       attempt_token = $2, attempt_time = now(), start_time = now(), lease_until = now(), next_time = now()
     where id = $1`,
    [id, randomUUID()],
  );
  let count = 0;
  const run: TextRunner = () => {
    count++;
    return Promise.resolve({ done: { files: [], text: "twice", usage } });
  };
  tasks.work(texts(run));
  expect(await tasks.ended([id])).toMatchObject([
    { state: "failed", error_code: "upstream_submit_unknown", cost: "0" },
  ]);
  expect(count).toBe(0);
  expect(await tasks.balance(accountId)).toEqual({ available: 1_000n, held: 0n });
});

/** A vendor that says nothing until it is stopped. */
function silent() {
  const signals: AbortSignal[] = [];
  const run: TextRunner = ({ signal }) => {
    signals.push(signal);
    return new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(new HttpFailure("aborted", "aborted")));
    });
  };
  return { run, asked: () => until(() => Promise.resolve(signals[0])) };
}

test.each([
  ["what came until then, where its model says so", true, "40"],
  ["nothing else", false, "0"],
])("R-TSK-6: a text that is cancelled costs %s", async (_, isCancelBilled, cost) => {
  const { accountId, id } = await submit(undefined, isCancelBilled);
  const asked = Promise.withResolvers<void>();
  const run: TextRunner = ({ signal }) =>
    new Promise((_resolve, reject) => {
      const cause = new HttpFailure("aborted", "aborted");
      signal.addEventListener("abort", () => reject(new TaskStopped({ usage }, cause)));
      asked.resolve();
    });
  const worker = tasks.work(texts(run));
  await asked.promise;
  await tasks.pool.query(askSql, [id]);
  worker.cancel(id);
  expect(await tasks.ended([id])).toMatchObject([{ state: "cancelled", cost, error_code: null }]);
  const left = 1_000n - BigInt(cost);
  expect(await tasks.balance(accountId)).toEqual({ available: left, held: 0n });
});

const askSql = "update task set cancel_requested = true where id = $1";

test.each([
  ["at once where its own process is told", { heartbeatMs: 600_000 }, true],
  ["with the next heartbeat where another one is", { heartbeatMs: 20 }, false],
])("a text that is made is cancelled %s", async (_, timings, isTold) => {
  const { accountId, id } = await submit();
  const { run, asked } = silent();
  const worker = tasks.work({ ...texts(run), timings: { ...timings, leaseMs: 1_200_000 } });
  const signal = await asked();
  await tasks.pool.query(askSql, [id]);
  if (isTold) worker.cancel(id);
  const [row] = await tasks.ended([id]);
  expect(row).toMatchObject({ state: "cancelled", cost: "0", error_code: null });
  expect(signal.aborted).toBe(true);
  expect(await tasks.balance(accountId)).toEqual({ available: 1_000n, held: 0n });
});
