/** POST /api/ai/tasks/{id}/cancel in every state, ends and their money, and webhooks of ends. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TaskState } from "../../../../src/task/state.ts";
import { type Customer, imageNanos, openTasks, type Tasks } from "../harness.ts";

let tasks: Tasks;
let customer: Customer;
beforeAll(async () => {
  tasks = await openTasks();
  customer = await tasks.customer();
});
afterAll(() => tasks.close());

/** Brings a new task into a state. */
async function taskIn(state: TaskState, vendor: string, payer = customer): Promise<string> {
  const taskId = await tasks.submit(payer, {
    callbackUrl: "https://receiver.example/hook",
    callbackId: `${state}-${vendor}-${payer.keyId}`,
  });
  if (state === "queued") return taskId;
  await tasks.move({ taskId, event: "claim", set: { vendor } });
  if (state === "submitting") return taskId;
  if (state === "submit_unknown") await tasks.move({ taskId, event: "lose" });
  else await tasks.move({ taskId, event: "accept" });
  if (state === "finalizing" || state === "completed")
    await tasks.move({ taskId, event: "produce" });
  if (state === "completed") {
    await tasks.end({ taskId, event: "complete", result: { files: [], text: "done" } });
  }
  if (state === "failed") {
    await tasks.end({ taskId, event: "fail", errorCode: "upstream_error", error: "e" });
  }
  if (state === "cancelled") await tasks.end({ taskId, event: "cancel" });
  return taskId;
}

describe("R-TSK-5: a cancel", () => {
  it.each<[TaskState, string, number, string, boolean]>([
    ["queued", "fixed", 200, "cancelled", false],
    ["submitting", "stoppable", 200, "progress", true],
    ["submit_unknown", "stoppable", 200, "progress", true],
    ["running", "stoppable", 200, "progress", true],
    ["submitting", "fixed", 409, "progress", false],
    ["running", "fixed", 409, "progress", false],
    ["finalizing", "stoppable", 409, "progress", false],
    ["completed", "fixed", 200, "completed", false],
    ["failed", "fixed", 200, "failed", false],
    ["cancelled", "fixed", 200, "cancelled", false],
  ])(
    "cancelling a task that is %s at a %s vendor answers %i, then it is %s",
    async (state, vendor, status, word, asked) => {
      const taskId = await taskIn(state, vendor);
      const path = `/api/ai/tasks/${taskId}`;
      const before = await tasks.send(customer, path);
      const reply = await tasks.send(customer, `${path}/cancel`, { body: "" });
      expect(reply.status).toBe(status);
      const after = await tasks.send(customer, path);
      expect(after.json).toMatchObject({ status: word, cancelRequested: asked });
      if (status === 409) {
        expect(reply.json["error"]).toMatchObject({ code: "task_not_cancellable" });
        expect(after.json).toEqual(before.json);
      } else {
        expect(reply.json).toEqual(after.json);
      }
      // Again: the same answer, and nothing more happens.
      const again = await tasks.send(customer, `${path}/cancel`, { body: "{}" });
      expect([again.status, (await tasks.send(customer, path)).json]).toEqual([status, after.json]);
    },
  );

  it("a cancel needs neither body nor content type, and refuses unknown members", async () => {
    const taskId = await taskIn("running", "stoppable", await tasks.customer());
    const owner = await tasks.customer();
    const own = await tasks.submit(owner);
    const path = `/api/ai/tasks/${own}/cancel`;
    const odd = await tasks.send(owner, path, { body: { reason: "x" } });
    expect([odd.status, (odd.json["error"] as { param: string }).param]).toEqual([400, "reason"]);
    const bare = await tasks.send(owner, path, { method: "POST" });
    expect([bare.status, bare.json["status"]]).toEqual([200, "cancelled"]);
    expect((await tasks.send(owner, `/api/ai/tasks/${taskId}/cancel`, { body: "" })).status).toBe(
      404,
    );
  });

  it("a cancel and a concurrent claim have one winner, and the money balances either way", async () => {
    const payer = await tasks.customer();
    for (let round = 0; round < 10; round++) {
      const taskId = await tasks.submit(payer);
      const [reply, claimed] = await Promise.all([
        tasks.send(payer, `/api/ai/tasks/${taskId}/cancel`, { body: "" }),
        tasks.move({ taskId, event: "claim", set: { vendor: "fixed" } }),
      ]);
      expect(reply.status).toBe(claimed === undefined ? 200 : 409);
      if (claimed !== undefined) await tasks.end({ taskId, event: "cancel" });
    }
    expect(await tasks.money(payer.accountId)).toEqual([10_000_000_000n, 0n]);
  });
});

describe("R-TSK-6: an end", () => {
  it("an end charges a completed task once, with its record, and releases the rest of its hold", async () => {
    const payer = await tasks.customer();
    const taskId = await taskIn("completed", "fixed", payer);
    expect(await tasks.money(payer.accountId)).toEqual([10_000_000_000n - imageNanos, 0n]);
    const { rows } = await tasks.pool.query("select * from call where id = $1", [taskId]);
    expect(rows).toEqual([
      expect.objectContaining({
        path: "/api/ai/tasks",
        model: "image",
        vendor: "fixed",
        cost: String(imageNanos),
        held: String(imageNanos),
        images: 1,
        charged: true,
        status: 200,
      }),
    ]);
    const late = await tasks.end({ taskId, event: "fail", errorCode: "task_timeout", error: "e" });
    expect(late).toBeUndefined();
    expect(await tasks.money(payer.accountId)).toEqual([10_000_000_000n - imageNanos, 0n]);
  });

  it("an end is refused to a process with an old fence", async () => {
    const taskId = await taskIn("running", "fixed");
    const old = { taskId, fence: 99, errorCode: "internal_error", error: "e" };
    expect(await tasks.end({ ...old, event: "fail" })).toBeUndefined();
    expect(await tasks.end({ ...old, fence: 1, event: "fail" })).toMatchObject({ state: "failed" });
  });

  it("R-TSK-6, R-HOOK-3: enqueues exactly one terminal webhook, with the state and the money", async () => {
    const payer = await tasks.customer();
    const words: Record<string, string> = {};
    for (const state of ["completed", "failed", "cancelled"] as const) {
      const taskId = await taskIn(state, "fixed", payer);
      const { rows } = await tasks.pool.query<{ body: Buffer }>(
        "select body from webhook_event where task_id = $1 and kind = 2",
        [taskId],
      );
      expect(rows).toHaveLength(1);
      const body = JSON.parse(rows[0]?.body.toString() ?? "");
      expect(body.external_data.task_id).toBe(taskId);
      expect(body.callback_id).toBe(`${state}-fixed-${payer.keyId}`);
      words[state] = `${body.status} ${body.progress} ${body.result_content} ${body.error_code}`;
    }
    expect(words).toEqual({
      completed: "completed 100 done null",
      failed: "failed 1 null upstream_error",
      cancelled: "cancelled 1 null null",
    });
  });
});
