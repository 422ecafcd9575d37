/** Polls in a tight loop: 429 in the caller's style, and nothing else happens (R-ERR-7, R-TSK-9). */
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PollLimit } from "../../src/task/poll-limit.ts";
import { errorOf, openTasks, type Tasks } from "./harness.ts";

describe("a bucket", () => {
  const ofTwo = (now: () => number) => new PollLimit({ perSecond: 2, burst: 3, now });
  const refused = expect.objectContaining({ status: 429 });

  it("lets so many through in one go, and then so many a second", () => {
    let nowMs = 0;
    const limit = ofTwo(() => nowMs);
    for (let count = 0; count < 3; count++) limit.take("a");
    expect(() => limit.take("a")).toThrow(refused);
    // Others have their own.
    limit.take("b");
    nowMs = 499;
    expect(() => limit.take("a")).toThrow(refused);
    nowMs = 500;
    limit.take("a");
    expect(() => limit.take("a")).toThrow(refused);
    // It never holds more than it did.
    nowMs = 1_000_000;
    for (let count = 0; count < 3; count++) limit.take("a");
    expect(() => limit.take("a")).toThrow(refused);
  });

  it("says how long to wait, in whole seconds", () => {
    const slow = new PollLimit({ perSecond: 0.25, burst: 1, now: () => 0 });
    slow.take("a");
    expect(() => slow.take("a")).toThrow(expect.objectContaining({ retryAfterSeconds: 4 }));
    const fast = new PollLimit({ perSecond: 1_000, burst: 1, now: () => 0 });
    fast.take("a");
    expect(() => fast.take("a")).toThrow(expect.objectContaining({ retryAfterSeconds: 1 }));
  });

  it("counts polls that told nothing new a quarter, and is never fuller than full", () => {
    const limit = new PollLimit({ perSecond: 1, burst: 2, now: () => 0 });
    let count = 0;
    expect(() => {
      for (; count < 100; count++) {
        limit.take("a");
        limit.giveBack("a");
      }
    }).toThrow(refused);
    // Two tokens are eight quarters, of which the last poll needs a whole one at first.
    expect(count).toBe(5);
    limit.giveBack("b");
    limit.take("b");
    limit.take("b");
    expect(() => limit.take("b")).toThrow(refused);
  });

  it("is forgotten once it is full", () => {
    let nowMs = 0;
    const limit = ofTwo(() => nowMs);
    for (let count = 0; count < 1_000; count++) limit.take(`account ${count}`);
    expect(limit.size).toBe(1_000);
    nowMs = 1_500;
    limit.take("a");
    expect(limit.size).toBe(1);
  });
});

describe("a poll too many", () => {
  let tasks: Tasks;
  beforeAll(async () => {
    // Nothing comes back while a test runs: 1 in 11 days.
    tasks = await openTasks({ polls: { perSecond: 1e-6, burst: 6 } });
  });
  afterAll(() => tasks.close());

  it("is 429 in the platform's words; the task is not touched, and its owner loses nothing", async () => {
    const customer = await tasks.customer();
    const taskId = await tasks.submit(customer);
    const before = await tasks.money(customer.accountId);
    const path = `/api/ai/tasks/${taskId}`;
    const statuses: number[] = [];
    for (let count = 0; count < 7; count++)
      statuses.push((await tasks.send(customer, path)).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429]);
    const refused = await tasks.send(customer, path, { headers: { "x-request-id": "too-many" } });
    expect(refused.headers["x-request-id"]).toBe("too-many");
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(refused.headers["etag"]).toBeUndefined();
    expect(errorOf(refused.json)).toMatchObject({
      type: "rate_limit_error",
      code: "rate_limit_exceeded",
      message: expect.stringMatching(/\?wait=30.*the tasks go on/),
    });
    // What does not exist, and what is not waited for, counts too: it costs a look.
    const other = "/api/ai/tasks/0199a0b0-0000-7000-8000-000000000000";
    expect((await tasks.send(customer, other)).status).toBe(429);
    expect((await tasks.send(customer, `${path}?wait=30`)).status).toBe(429);
    expect(await tasks.metric("uas_task_polls_refused_total")).toBe(4);
    // Everything else goes on: the task, its cancel and new ones.
    expect(await tasks.money(customer.accountId)).toEqual(before);
    expect((await tasks.send(customer, "/api/ai/tasks")).status).toBe(200);
    await tasks.submit(customer);
    const cancelled = await tasks.send(customer, `${path}/cancel`, { body: "" });
    expect([cancelled.status, cancelled.json["status"]]).toEqual([200, "cancelled"]);
  });

  it("is another account's own matter, and no operator's", async () => {
    const [loud, quiet] = [await tasks.customer(), await tasks.customer()];
    const taskId = await tasks.submit(quiet);
    for (let count = 0; count < 7; count++) await tasks.send(loud, `/api/ai/tasks/${taskId}`);
    expect((await tasks.send(loud, `/api/ai/tasks/${taskId}`)).status).toBe(429);
    expect((await tasks.send(quiet, `/api/ai/tasks/${taskId}`)).status).toBe(200);
    for (let count = 0; count < 7; count++) await tasks.operator.getTask({ taskId });
  });

  it("is RESOURCE_EXHAUSTED over RPC", async () => {
    const customer = await tasks.customer();
    const taskId = await tasks.submit(customer);
    const client = tasks.clientOf(customer);
    for (let count = 0; count < 6; count++) await client.getTask({ taskId });
    const again = client.getTask({ taskId });
    await expect(again).rejects.toMatchObject({ code: Code.ResourceExhausted });
  });

  it("is a quarter where it is answered by 304, also after it has waited", async () => {
    const customer = await tasks.customer();
    const taskId = await tasks.submit(customer);
    const path = `/api/ai/tasks/${taskId}`;
    const etag = (await tasks.send(customer, path)).headers["etag"] ?? "";
    const statuses: number[] = [];
    for (let count = 0; count < 18; count++) {
      const headers = { "if-none-match": etag };
      statuses.push((await tasks.send(customer, `${path}?wait=0`, { headers })).status);
    }
    // Five tokens are left: 17 quarters, and then less than a whole one.
    expect(statuses.filter((status) => status === 304)).toHaveLength(17);
    expect(statuses.at(-1)).toBe(429);
  });

  it("counts a poll that waits once, and a wrong one not at all", async () => {
    const customer = await tasks.customer();
    const taskId = await tasks.submit(customer);
    const path = `/api/ai/tasks/${taskId}`;
    for (let count = 0; count < 9; count++) {
      expect((await tasks.send(customer, `${path}?wait=61`)).status).toBe(400);
    }
    const statuses: number[] = [];
    for (let count = 0; count < 6; count++) {
      const waiting = tasks.send(customer, `${path}?wait=60`);
      await expect
        .poll(async () => (await tasks.metric("uas_task_polls_waiting")) ?? 0, { interval: 5 })
        .toBe(1);
      await tasks.move(count % 2 === 0 ? { taskId, event: "claim" } : { taskId, event: "requeue" });
      statuses.push((await waiting).status);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
    expect((await tasks.send(customer, path)).status).toBe(429);
  });
});
