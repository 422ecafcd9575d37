/** GET /api/ai/tasks/{id}, lists, watches and schemas. */
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import { type Customer, type End, openTasks, type Tasks } from "./harness.ts";

let tasks: Tasks;
let customer: Customer;
beforeAll(async () => {
  tasks = await openTasks();
  customer = await tasks.customer();
});
afterAll(() => tasks.close());

function completed(taskId: string): End {
  const files = [1, 2].map((n) => ({
    url: `https://gateway.example/files/${n}.png`,
    contentType: "image/png",
    sizeBytes: 10 + n,
    sha256: String(n).repeat(64),
  }));
  return { taskId, event: "complete", result: { files } };
}

async function complete(taskId: string): Promise<void> {
  await tasks.run(taskId);
  await tasks.move({ taskId, event: "produce" });
  await tasks.end(completed(taskId));
}

const pathOf = (taskId: string): string => `/api/ai/tasks/${taskId}`;

describe("a poll", () => {
  it("R-TSK-4: a poll shows a queued task completely, and suggests when to poll again", async () => {
    const taskId = await tasks.submit(customer, { callbackId: "mine" });
    const { status, json, headers } = await tasks.send(customer, pathOf(taskId), {
      headers: { "x-request-id": "poll" },
    });
    expect([status, headers["x-request-id"], headers["retry-after"]]).toEqual([200, "poll", "2"]);
    expect(json).toEqual({
      taskId,
      modelKey: "image",
      taskType: "IMAGE",
      callbackId: "mine",
      status: "progress",
      stage: "queued",
      progress: 0,
      resultUrl: null,
      resultUrls: [],
      resultFiles: [],
      resultContent: null,
      error: null,
      errorCode: null,
      usage: { promptTokens: 0, completionTokens: 0, totalTokens: 0 },
      cost: null,
      createdAt: expect.any(String),
      startedAt: null,
      finishedAt: null,
      expiresAt: null,
      cancelRequested: false,
    });
  });

  it("R-TSK-4: a poll shows the result, cost and usage of a completed task", async () => {
    const taskId = await tasks.submit(customer);
    await complete(taskId);
    const { json, headers } = await tasks.send(customer, pathOf(taskId));
    expect(headers).not.toHaveProperty("retry-after");
    expect(json).toMatchObject({
      status: "completed",
      stage: "ended",
      progress: 100,
      resultUrl: "https://gateway.example/files/1.png",
      resultUrls: ["https://gateway.example/files/1.png", "https://gateway.example/files/2.png"],
      usage: { promptTokens: 7, completionTokens: 0, totalTokens: 7 },
      cost: { amount: "0.04", currency: "USD" },
      finishedAt: expect.any(String),
    });
  });

  it("R-TSK-10: a poll shows why a task failed, and charges nothing", async () => {
    const payer = await tasks.customer();
    const taskId = await tasks.submit(payer);
    await tasks.run(taskId);
    await tasks.end({ taskId, event: "fail", errorCode: "upstream_error", error: "too busy" });
    const { json } = await tasks.send(payer, pathOf(taskId));
    const error = { code: "upstream_error", message: "too busy" };
    expect(json).toMatchObject({ status: "failed", error, errorCode: "upstream_error" });
    expect(json["cost"]).toEqual({ amount: "0", currency: "USD" });
    expect(await tasks.money(payer.accountId)).toEqual([10_000_000_000n, 0n]);
  });

  it("R-TSK-5: a poll answers for another account's task exactly as for an unknown one", async () => {
    const other = await tasks.customer();
    const taskId = await tasks.submit(other);
    const ids = [taskId, "01900000-0000-7000-8000-000000000000", "task_x", "%00", "a".repeat(80)];
    for (const suffix of ["", "/cancel"]) {
      const replies = await Promise.all(
        ids.map((id) =>
          tasks.send(customer, pathOf(id) + suffix, suffix === "" ? {} : { body: "{}" }),
        ),
      );
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([404]));
      expect(new Set(replies.map(({ json }) => JSON.stringify(json["error"]))).size).toBe(1);
      expect(replies[0]?.json["error"]).toMatchObject({ code: "task_not_found" });
    }
  });

  it("a poll answers 304 to a client that has this version already", async () => {
    const taskId = await tasks.submit(customer);
    const first = await tasks.send(customer, pathOf(taskId));
    const etag = first.headers["etag"] ?? "";
    const same = await tasks.send(customer, pathOf(taskId), {
      headers: { "if-none-match": `"x", W/${etag}` },
    });
    expect([same.status, same.json, same.headers["etag"]]).toEqual([304, {}, etag]);
    await tasks.run(taskId);
    const changed = await tasks.send(customer, pathOf(taskId), {
      headers: { "if-none-match": etag },
    });
    expect([changed.status, changed.json["stage"]]).toEqual([200, "running"]);
    expect(changed.headers["etag"]).not.toBe(etag);
  });

  it.each([
    ["wait=abc", "wait", "wait: must be a whole number"],
    ["wait=1&wait=2", "wait", "wait: occurs twice; send it once"],
  ])("R-ERR-7: a poll names what is wrong with %s", async (query, param, message) => {
    const taskId = await tasks.submit(customer);
    const { status, json } = await tasks.send(customer, `${pathOf(taskId)}?${query}`);
    expect([status, json["error"]]).toEqual([400, expect.objectContaining({ param, message })]);
  });

  it.each(["-1", "61", "x", "1.5"])("a poll refuses wait=%s", async (wait) => {
    const taskId = await tasks.submit(customer);
    const { status, json } = await tasks.send(customer, `${pathOf(taskId)}?wait=${wait}`);
    expect([status, (json["error"] as { message: string }).message]).toEqual([
      400,
      expect.stringContaining("wait"),
    ]);
  });
});

/** Until so many polls wait. */
async function parked(count: number): Promise<void> {
  await expect
    .poll(async () => (await tasks.metric("uas_task_polls_waiting")) ?? 0, { interval: 5 })
    .toBe(count);
}

describe("R-TSK-4: a poll that waits", () => {
  it("a poll that waits is woken by each change, by another process too, and by the end", async () => {
    const taskId = await tasks.submit(customer);
    const first = await tasks.send(customer, pathOf(taskId));
    // A poll that does not say what it knows may read the task after the change, and waits for
    // another one.
    const knows = (etag = ""): object => ({ headers: { "if-none-match": etag } });
    const poll = tasks.send(customer, `${pathOf(taskId)}?wait=60`, knows(first.headers["etag"]));
    await parked(1);
    await tasks.move({ taskId, event: "claim" });
    const second = await poll;
    expect(second.json["stage"]).toBe("submitting");
    const next = tasks.send(customer, `${pathOf(taskId)}?wait=60`, knows(second.headers["etag"]));
    await parked(1);
    await tasks.end({ taskId, event: "fail", errorCode: "upstream_error", error: "e" });
    expect((await next).json["status"]).toBe("failed");
    // Nothing can come any more.
    const last = await tasks.send(customer, `${pathOf(taskId)}?wait=60`);
    expect(last.json["status"]).toBe("failed");
  });

  it("a poll that waits does not miss changes since the version that its client has", async () => {
    const taskId = await tasks.submit(customer);
    const { headers } = await tasks.send(customer, pathOf(taskId));
    const known = { "if-none-match": headers["etag"] ?? "" };
    await tasks.run(taskId);
    const news = await tasks.send(customer, `${pathOf(taskId)}?wait=60`, { headers: known });
    expect([news.status, news.json["stage"]]).toEqual([200, "running"]);
  });

  it("a poll that waits ends after its time with the unchanged task, or with 304", async () => {
    const taskId = await tasks.submit(customer);
    const wait = `${pathOf(taskId)}?wait=1`;
    const first = await tasks.send(customer, wait);
    expect([first.status, first.json["stage"]]).toEqual([200, "queued"]);
    const headers = { "if-none-match": first.headers["etag"] ?? "" };
    expect((await tasks.send(customer, wait, { headers })).status).toBe(304);
    await parked(0);
  });

  it("a poll that waits is one of at most 100 of its account: more are answered at once", async () => {
    const [waiting, other] = [await tasks.customer(), await tasks.customer()];
    const [taskId, otherId] = [await tasks.submit(waiting), await tasks.submit(other)];
    const client = tasks.clientOf(waiting);
    const leave = new AbortController();
    const polls = Array.from({ length: 100 }, () =>
      client.getTask({ taskId, wait: 60 }, { signal: leave.signal }),
    );
    await parked(100);
    expect((await client.getTask({ taskId, wait: 60 })).task?.version).toBe(1);
    const elsewhere = tasks.clientOf(other).getTask({ taskId: otherId, wait: 60 });
    await parked(101);
    leave.abort();
    await Promise.allSettled(polls);
    await parked(1);
    await tasks.run(otherId);
    expect((await elsewhere).task?.version).toBeGreaterThan(1);
  });
});

describe("a watch", () => {
  it("a watch streams each visible change in order, and ends with the task", async () => {
    const taskId = await tasks.submit(customer);
    const seen: [TaskStatus, number][] = [];
    for await (const { task } of tasks.clientOf(customer).watchTask({ taskId })) {
      seen.push([task?.status ?? 0, task?.progress ?? -1]);
      if (seen.length === 1) await tasks.run(taskId);
      if (seen.length === 2) await tasks.move({ taskId, event: "produce" });
      if (task?.progress === 99) await tasks.end(completed(taskId));
    }
    expect(seen[0]).toEqual([TaskStatus.PROGRESS, 0]);
    expect(seen.at(-1)).toEqual([TaskStatus.COMPLETED, 100]);
    const progress = seen.map(([, value]) => value);
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  });

  it("a watch does not show tasks of other accounts", async () => {
    const taskId = await tasks.submit(await tasks.customer());
    const stream = tasks.clientOf(customer).watchTask({ taskId })[Symbol.asyncIterator]();
    const error = await stream.next().catch((reason: unknown) => reason);
    expect(ConnectError.from(error).code).toBe(Code.NotFound);
  });
});

describe("a list", () => {
  it("a list has the tasks of the caller's account, newest first, in pages and by status", async () => {
    const lister = await tasks.customer();
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.unshift(await tasks.submit(lister));
    await complete(ids[1] ?? "");
    const listed = async (query: string) => {
      const { json } = await tasks.send(lister, `/api/ai/tasks${query}`);
      const found = json["tasks"] as { taskId: string }[];
      return { ids: found.map(({ taskId }) => taskId), next: json["nextPageToken"] };
    };
    expect((await listed("")).ids).toEqual(ids);
    const first = await listed("?pageSize=2");
    expect(first.ids).toEqual(ids.slice(0, 2));
    expect((await listed(`?pageSize=2&pageToken=${String(first.next)}`)).ids).toEqual(ids.slice(2));
    expect((await listed("?status=completed")).ids).toEqual([ids[1]]);
    expect((await listed("?status=progress")).ids).toEqual([ids[0], ids[2]]);
    const bad = await tasks.send(lister, "/api/ai/tasks?status=done");
    expect([bad.status, (bad.json["error"] as { param: string }).param]).toEqual([400, "status"]);
    const foreign = await tasks.send(lister, `/api/ai/tasks?accountId=${customer.accountId}`);
    expect(foreign.status).toBe(404);
  });

  it("operators list and poll the tasks of any account, and find a task by its request id", async () => {
    const lister = await tasks.customer();
    const taskId = await tasks.submit(lister, { requestContext: { requestId: "trace-1" } });
    await tasks.run(taskId);
    const { task } = await tasks.operator.getTask({ taskId: "trace-1" });
    expect(task).toMatchObject({ taskId, requestId: "trace-1", vendorTaskId: "v1" });
    expect((await tasks.clientOf(lister).getTask({ taskId })).task?.vendorTaskId).toBe("");
    await expect(tasks.clientOf(lister).getTask({ taskId: "trace-1" })).rejects.toThrow(/no such/);
    const { accountId } = lister;
    expect(
      (await tasks.operator.listTasks({ accountId })).tasks.map((each) => each.taskId),
    ).toEqual([taskId]);
    await expect(tasks.operator.listTasks({})).rejects.toThrow(/accountId/);
  });
});

it("a stopping gateway answers waiting polls", async () => {
  const other = await openTasks();
  try {
    const payer = await other.customer();
    const taskId = await other.submit(payer);
    const poll = other.send(payer, `${pathOf(taskId)}?wait=60`);
    await expect.poll(() => other.metric("uas_task_polls_waiting"), { interval: 5 }).toBe(1);
    other.stopping.abort();
    expect((await poll).json["stage"]).toBe("queued");
  } finally {
    await other.close();
  }
});
