/** `/dashscope`: pictures and films, which are tasks. */
import { createAlibaba } from "@ai-sdk/alibaba";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import {
  type DashscopeGateway,
  dashscopeError,
  startDashscopeGateway,
} from "./dashscope-vendor.ts";

let gateway: DashscopeGateway;
let customer: Customer;
let stranger: Customer;

beforeAll(async () => {
  gateway = await startDashscopeGateway();
  [customer, stranger] = await Promise.all([gateway.customer(), gateway.customer()]);
});

beforeEach(() => gateway.vendor.clear());

afterAll(async () => {
  // The gateway's own requests may get compressed replies.
  const strange = gateway.vendor.violations.filter((each) => !each.endsWith("may be compressed"));
  expect(strange).toEqual([]);
  // Reading an ended task wakes the worker that settles it.
  const open = [...gateway.dashscope.tasks.values()].filter(({ status }) =>
    ["PENDING", "RUNNING"].includes(status),
  );
  const tasks = open.map(async (task) => {
    task.status = "FAILED";
    await vi.waitUntil(async () => (await statusOf(task.id)) === task.status);
  });
  await Promise.all(tasks);
  await gateway.close();
});

const images = "/api/v1/services/aigc/text2image/image-synthesis";
const films = "/api/v1/services/aigc/video-generation/video-synthesis";

function ask(path: string, { who = customer, ...init }: RequestInit & { who?: Customer } = {}) {
  return fetch(`${gateway.url}/dashscope${path}`, {
    ...init,
    headers: {
      authorization: `Bearer ${who.key}`,
      // Alibaba's clients send the type with each POST, also with one that has no body.
      ...(init.method === "POST" && { "content-type": "application/json" }),
      ...(init.headers as Record<string, string>),
    },
  });
}

interface Told {
  readonly output: { readonly task_id: string; readonly task_status: string };
}

async function submit(
  path: string,
  parameters: object,
  headers: Record<string, string> = {},
): Promise<string> {
  const model = path === films ? "wan2.6-t2v" : "wan2.6-t2i";
  const body = JSON.stringify({ model, input: { prompt: "a lighthouse" }, parameters });
  const response = await ask(path, {
    method: "POST",
    body,
    headers: { "x-dashscope-async": "enable", ...headers },
  });
  expect(response.status).toBe(200);
  const told = (await response.json()) as Told;
  expect(told.output.task_status).toBe("PENDING");
  return told.output.task_id;
}

async function statusOf(id: string): Promise<string> {
  const response = await ask(`/api/v1/tasks/${id}`);
  expect(response.status).toBe(200);
  return ((await response.json()) as Told).output.task_status;
}

async function costOf(requestId: string): Promise<bigint> {
  return (await gateway.call(requestId)).cost?.amountNanos ?? 0n;
}

test("R-VND-2: a submit passes byte for byte, with its money held", async () => {
  const before = await gateway.money(customer.accountId);
  const sent = `{"model":"wan2.6-t2i", "input":{"prompt":"x"},"parameters":{"n":2,"seed":9007199254740993}}\r\n`;
  const headers = { "x-dashscope-async": "enable", "x-request-id": "dsj-1" };
  const response = await ask(images, { method: "POST", body: sent, headers });
  expect(response.headers.get("x-request-id")).toBe("dsj-1");
  const { id } = gateway.dashscope.last();
  expect(await response.text()).toBe(
    `{"output":{"task_status":"PENDING","task_id":"${id}"},  "request_id":"vendor-body-id"}\n`,
  );
  expect(gateway.vendor.requests[0]?.body.toString()).toBe(sent);
  const held = await gateway.money(customer.accountId);
  expect(held.held - before.held).toBe(40_000_000n);
  gateway.dashscope.succeed({ image_count: 2 }, 2);
  expect(await costOf("dsj-1")).toBe(40_000_000n);
  const polled = await (await ask(`/api/v1/tasks/${id}`)).text();
  expect(polled).toContain('"seed": 9007199254740993, "x": -0.10}\r\n');
});

test("R-TSK-9, pitfall 14: tasks end and are charged by their results without polls of a client", async () => {
  const failed = { code: "InternalError.Timeout", message: "An internal timeout error" };
  const unwanted = { code: "DataInspectionFailed", message: "Output may be inappropriate" };
  const one = { url: `${gateway.vendor.origin}/files/1.png` };
  await submit(films, { duration: 10 }, { "x-request-id": "dsj-film" });
  gateway.dashscope.succeed({ duration: 5, video_count: 1, SR: 720 });
  // Each of several pictures fails alone.
  await submit(images, { n: 4 }, { "x-request-id": "dsj-part" });
  const part = gateway.dashscope.last();
  part.output = {
    results: [one, failed, failed, failed],
    task_metrics: { SUCCEEDED: 1, FAILED: 3 },
  };
  part.status = "SUCCEEDED";
  const unwantedId = await submit(films, {}, { "x-request-id": "dsj-unwanted" });
  const last = gateway.dashscope.last();
  last.output = unwanted;
  last.status = "FAILED";
  const forgotten = await submit(films, {}, { "x-request-id": "dsj-forgotten" });
  gateway.dashscope.tasks.delete(forgotten);
  const ids = ["dsj-film", "dsj-part", "dsj-unwanted", "dsj-forgotten"];
  expect(await Promise.all(ids.map(costOf))).toEqual([500_000_000n, 20_000_000n, 0n, 0n]);
  const calls = await Promise.all(ids.map((id) => gateway.call(id)));
  expect(calls.map(({ errorCode }) => errorCode)).toEqual([
    "",
    "",
    "content_rejected",
    "upstream_error",
  ]);
  expect(await statusOf(unwantedId)).toBe("FAILED");
});

test("an empty cancel stops a waiting task at once; a running one is refused in Alibaba's words", async () => {
  const waiting = await submit(films, {}, { "x-request-id": "dsj-6" });
  const stopped = await ask(`/api/v1/tasks/${waiting}/cancel`, { method: "POST" });
  expect([stopped.status, await stopped.text()]).toEqual([200, '{"request_id":"vendor-body-id"}']);
  expect(await statusOf(waiting)).toBe("CANCELED");
  const running = await submit(films, {}, { "x-request-id": "dsj-7" });
  gateway.dashscope.last().status = "RUNNING";
  const refused = await ask(`/api/v1/tasks/${running}/cancel`, { method: "POST" });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ code: "UnsupportedOperation" });
});

test("R-VND-3, pitfall 3: another account's task is 404, and so is an unknown one", async () => {
  const id = await submit(films, {}, { "x-request-id": "dsj-8" });
  gateway.vendor.clear();
  for (const [method, path, who] of [
    ["GET", id, stranger],
    ["POST", `${id}/cancel`, stranger],
    ["GET", "unknown", customer],
    ["POST", "unknown/cancel", customer],
  ] as const) {
    const response = await ask(`/api/v1/tasks/${path}`, { method, who });
    expect([path, response.status]).toEqual([path, 404]);
    expect(await response.json()).toEqual({
      code: "not_found",
      message: expect.any(String),
      request_id: expect.any(String),
    });
  }
  // Workers look at tasks meanwhile, each at its own.
  const asked = gateway.vendor.requests.filter(({ url }) => /unknown|cancel/.test(url));
  expect(asked).toEqual([]);
});

test("polls are answered from what is kept: Alibaba allows 20 a second for all customers together", async () => {
  const id = await submit(films, {}, { "x-request-id": "dsj-9" });
  gateway.vendor.clear();
  await Promise.all(Array.from({ length: 30 }, () => statusOf(id)));
  const polls = gateway.vendor.requests.filter(({ url }) => url.endsWith(id));
  // The worker polls by itself, here every 50 ms.
  expect(polls.length).toBeLessThan(15);
});

test("a route that answers only as a task refuses a synchronous call", async () => {
  const response = await ask(films, {
    method: "POST",
    body: JSON.stringify({ model: "wan2.6-t2v", input: { prompt: "x" } }),
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    message: expect.stringContaining("X-DashScope-Async"),
  });
  expect(gateway.vendor.requests.filter(({ method }) => method === "POST")).toEqual([]);
});

test("R-ERR-7: errors of a task are in the vendor's words, in whatever spelling the client wrote it", async () => {
  for (const value of ["Enable", "ENABLE"]) {
    const response = await ask(films, {
      method: "POST",
      body: JSON.stringify({ model: "wan2.6-t2v", input: { prompt: "x" } }),
      headers: { "x-dashscope-async": value },
    });
    expect([value, response.status]).toEqual([value, 200]);
  }
});

test("R-ERR-3, R-ERR-5: an overdue account is 503, a lost answer is 500 that no client repeats", async () => {
  const model = "wan2.6-t2v";
  const init = {
    method: "POST",
    body: JSON.stringify({ model, input: { prompt: "x" } }),
    headers: { "x-dashscope-async": "enable" },
  };
  gateway.dashscope.next = dashscopeError(400, "Arrearage");
  expect((await ask(films, init)).status).toBe(503);
  gateway.dashscope.next = { body: '{"output":', isCut: true };
  const lost = await ask(films, init);
  expect([lost.status, lost.headers.get("x-should-retry")]).toEqual([500, "false"]);
  expect(await lost.json()).toMatchObject({ code: "upstream_submit_unknown" });
});

test("R-HOOK-7: a callback in the header becomes the platform's webhook", async () => {
  const headers = {
    "x-callback-url": `${gateway.receiver.origin}/hook`,
    "x-callback-id": "order-7",
    "x-request-id": "dsj-10",
  };
  const id = await submit(films, {}, headers);
  gateway.dashscope.succeed({ duration: 5 });
  const last = () =>
    JSON.parse(gateway.receiver.received.at(-1)?.body.toString() ?? "{}") as Record<
      string,
      unknown
    >;
  const told = { callback_id: "order-7", status: "completed" };
  await expect.poll(last).toMatchObject(told);
  const data = last()["external_data"] as Record<string, string>;
  expect(data).toMatchObject({
    vendor: "dashscope",
    vendor_task_id: id,
    vendor_status: "SUCCEEDED",
    request_id: "dsj-10",
  });
  expect(JSON.parse(data["vendor_payload"] ?? "")).toMatchObject({ output: { task_id: id } });
});

/** The gateway's own tasks, of the same vendor. @param body default: a poll */
async function own(path: string, body?: object): Promise<{ readonly taskId: string }> {
  const headers = { authorization: `Bearer ${customer.key}`, "content-type": "application/json" };
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(`${gateway.url}/api/ai/tasks${path}`, { headers, ...init });
  return (await response.json()) as { taskId: string };
}

test("R-TSK-2, R-TSK-6: tasks of the gateway's own take canonical parameters, and end as they do", async () => {
  const imageParams = { prompt: "x", size: "1280x720", n: 2, seed: 7, promptExtend: true };
  const more = { extra: { style: "<anime>" } };
  const made = await own("", {
    modelKey: "wan2.6-t2i",
    imageParams: { ...imageParams, ...more },
  });
  const sent = () =>
    gateway.vendor.requests.filter(
      ({ method, url }) => method === "POST" && url.includes("synthesis"),
    );
  await vi.waitUntil(() => sent().length === 1);
  expect(sent()[0]?.json).toEqual({
    model: "wan2.6-t2i",
    input: { prompt: "x" },
    parameters: { n: 2, seed: 7, prompt_extend: true, size: "1280*720", style: "<anime>" },
  });
  gateway.dashscope.succeed({ image_count: 2 }, 2);
  const film = await own("", {
    modelKey: "wan2.6-t2v",
    videoParams: { prompt: "x", duration: 8 },
  });
  await vi.waitUntil(() => sent().length === 2);
  gateway.dashscope.succeed({ duration: 8 });
  await expect
    .poll(() => own(`/${made.taskId}`))
    .toMatchObject({
      status: "completed",
      resultUrls: [expect.any(String), expect.any(String)],
      cost: { amount: "0.04" },
    });
  await expect
    .poll(() => own(`/${film.taskId}`))
    .toMatchObject({
      status: "completed",
      cost: { amount: "0.8" },
    });
});

test("@ai-sdk/alibaba generates a video", async () => {
  const alibaba = createAlibaba({ apiKey: customer.key, videoBaseURL: `${gateway.url}/dashscope` });
  const model = alibaba.video("wan2.6-t2v");
  const asked = { prompt: "a lighthouse", n: 1, duration: 5, providerOptions: {} };
  const started = await model.doStart?.(asked as never);
  const { operation } = started as { operation: unknown };
  const look = () => model.doStatus?.({ operation, providerOptions: {} } as never);
  expect(await look()).toMatchObject({ status: "pending" });
  gateway.dashscope.succeed({ duration: 5 });
  const call = gateway.dashscope.last();
  await expect.poll(look).toMatchObject({
    status: "completed",
    videos: [{ type: "url", url: `${gateway.vendor.origin}/files/1.mp4` }],
    providerMetadata: { alibaba: { taskId: call.id } },
  });
});
