/** `/fal/queue`: jobs, which are tasks. */
import { createFal } from "@ai-sdk/fal";
import { createFalClient } from "@fal-ai/client";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import { type FalGateway, falError, startFalGateway, textResult } from "./fal-vendor.ts";

/** The AI SDK only follows addresses of the public internet. */
const publicUrl = "https://gateway.test";

let gateway: FalGateway;
let customer: Customer;
let stranger: Customer;

beforeAll(async () => {
  gateway = await startFalGateway({ publicUrl });
  [customer, stranger] = await Promise.all([gateway.customer(), gateway.customer()]);
});

beforeEach(() => gateway.queue.clear());

afterAll(async () => {
  expect([...gateway.run.violations, ...gateway.queue.violations]).toEqual([]);
  // Reading an ended job wakes the worker that settles it.
  const jobs = [...gateway.fal.jobs.values()].map(async (job) => {
    job.status = "COMPLETED";
    job.result = falError(500, "over");
    const path = `/queue/${job.app}/requests/${job.id}/status`;
    await vi.waitUntil(async () => (await ask(path)).status === 200);
  });
  await Promise.all(jobs);
  await gateway.close();
});

const flux = "/queue/fal-ai/flux/schnell";
const hi = JSON.stringify({ prompt: "a lighthouse" });

function ask(path: string, { who = customer, ...init }: RequestInit & { who?: Customer } = {}) {
  return fetch(`${gateway.url}/fal${path}`, {
    ...init,
    headers: {
      authorization: `Key ${who.key}`,
      // fal's client sends the type with everything, also if there is no body.
      "content-type": "application/json",
      ...(init.headers as Record<string, string>),
    },
  });
}

interface Told {
  readonly request_id: string;
  readonly status: string;
  readonly status_url: string;
  readonly response_url: string;
  readonly cancel_url: string;
}

async function submit(
  path: string = flux,
  headers: Record<string, string> = {},
  body: string = hi,
): Promise<Told> {
  const response = await ask(path, { method: "POST", body, headers });
  expect(response.status).toBe(200);
  return (await response.json()) as Told;
}

/** A result with so many pictures. */
function pictures(count = 1, billed?: string) {
  const url = `${gateway.queue.origin}/files/1.png`;
  const list = Array.from({ length: count }, () => ({ url, content_type: "image/png" }));
  return {
    headers: {
      "x-fal-request-id": gateway.fal.last().id,
      ...(billed !== undefined && { "x-fal-billable-units": billed }),
    },
    body: `{"images": ${JSON.stringify(list)},"seed": 9007199254740993, "x": -0.10}\r\n`,
  };
}

async function costOf(requestId: string): Promise<bigint> {
  return (await gateway.call(requestId)).cost?.amountNanos ?? 0n;
}

test("R-VND-2, pitfall 1: a submit passes, its addresses are ours, its money is held", async () => {
  const before = await gateway.money(customer.accountId);
  const sent = `{"prompt":"x", "num_images":2,"seed":9007199254740993,\r\n "y": -0.10}`;
  const headers = { "x-fal-queue-priority": "low" };
  const response = await ask(flux, { method: "POST", body: sent, headers });
  const { id } = gateway.fal.last();
  const at = `${publicUrl}/fal/queue/fal-ai/flux/requests/${id}`;
  // An address in a log is plain text.
  const log = `${gateway.queue.origin}/fal-ai/flux/requests/${id}`;
  expect(await response.text()).toBe(
    `{"status":"IN_QUEUE", "request_id":"${id}","response_url":"${at}","status_url":"${at}/status",  "cancel_url": "${at}/cancel","logs":[{"message":"see ${log}"}],"metrics":{"inference_time": 0.10}}`,
  );
  expect(response.headers.get("x-fal-request-id")).toBe(id);
  const [asked] = gateway.queue.requests;
  expect([asked?.url, asked?.body.toString()]).toEqual(["/fal-ai/flux/schnell", sent]);
  expect(asked?.headers["x-fal-queue-priority"]).toBe("low");
  const held = await gateway.money(customer.accountId);
  expect(held.held - before.held).toBe(6_000_000n);
});

test("a job that speaks is charged the characters of its text, which its vendor does not report", async () => {
  const id = "falj-spoken";
  const text = JSON.stringify({ prompt: "Good evening, 🌙!" });
  await submit("/queue/fal-ai/kokoro", { "x-request-id": id }, text);
  const audio = { url: `${gateway.queue.origin}/files/1.wav` };
  gateway.fal.end({ body: JSON.stringify({ audio }) });
  expect(await costOf(id)).toBe(16n * 20_000n);
});

test("R-TSK-9, pitfall 14: jobs end and are charged by fal's bill without polls of a client", async () => {
  const four = '{"prompt":"x","num_images":4}';
  await submit(flux, { "x-request-id": "falj-billed" }, four);
  gateway.fal.end(pictures(1, "2"));
  await submit(flux, { "x-request-id": "falj-counted" }, four);
  gateway.fal.end(pictures(3));
  await submit(
    "/queue/fal-ai/veo3",
    { "x-request-id": "falj-film" },
    '{"prompt":"x","duration":"8s"}',
  );
  gateway.fal.end({ body: `{"video":{"url":"${gateway.queue.origin}/files/1.mp4"}}` });
  await submit(flux, { "x-request-id": "falj-unwanted" });
  const detail = [{ loc: ["body", "prompt"], msg: "unsafe", type: "content_policy_violation" }];
  gateway.fal.end(falError(422, detail));
  await submit(flux, { "x-request-id": "falj-broken" });
  gateway.fal.end(falError(500, "CUDA out of memory"));
  const ids = ["billed", "counted", "film", "unwanted", "broken"].map((name) => `falj-${name}`);
  expect(await Promise.all(ids.map(costOf))).toEqual([
    6_000_000n,
    9_000_000n,
    3_200_000_000n,
    0n,
    0n,
  ]);
  const calls = await Promise.all(ids.map((id) => gateway.call(id)));
  expect(calls.map(({ errorCode }) => errorCode)).toEqual([
    "",
    "",
    "",
    "content_rejected",
    "upstream_error",
  ]);
});

test("a job is 202 until it has ended, its result passes byte for byte", async () => {
  const { request_id: id } = await submit();
  const at = `/queue/fal-ai/flux/requests/${id}`;
  const waiting = await ask(`${at}/status?logs=1`);
  expect([waiting.status, ((await waiting.json()) as Told).status]).toEqual([202, "IN_QUEUE"]);
  gateway.queue.clear();
  for (let count = 0; count < 5; count++) {
    const early = await ask(at);
    expect([early.status, await early.text()]).toEqual([
      400,
      '{"detail":"Request is still in progress"}',
    ]);
  }
  // The result is not asked for before there is one.
  expect(gateway.queue.requests.filter(({ url }) => url.endsWith(id))).toEqual([]);
  const result = pictures(1, "1");
  gateway.fal.end(result);
  const status = async () => (await ask(`${at}/status`)).status;
  await expect.poll(status).toBe(200);
  const response = await ask(at);
  expect([response.status, await response.text()]).toEqual([200, result.body]);
  expect(response.headers.get("x-fal-billable-units")).toBe("1");
});

test("a result that is requested right after the end is there, however recent the last report is", async () => {
  const slow = await startFalGateway({ refreshMs: 3_600_000 });
  const { key } = await slow.customer();
  const look = (path: string, init: RequestInit = {}) =>
    fetch(`${slow.url}/fal/queue/fal-ai/flux${path}`, {
      ...init,
      headers: { authorization: `Key ${key}`, "content-type": "application/json" },
    });
  const submitted = await look("/schnell", { method: "POST", body: hi });
  const { request_id: id } = (await submitted.json()) as Told;
  expect((await look(`/requests/${id}/status`)).status).toBe(202);
  expect((await look(`/requests/${id}`)).status).toBe(400);
  slow.fal.end({ body: '{"images": [{"url": "https://v3.fal.media/1.png"}]}' });
  expect((await look(`/requests/${id}`)).status).toBe(200);
  expect((await look(`/requests/${id}/status`)).status).toBe(200);
  slow.fal.end({ body: `{"images": [{"url": "${slow.queue.origin}/files/1.png"}]}` });
  await slow.close();
});

test("a job of a text model is charged by its tokens, or by an estimate", async () => {
  const path = "/queue/fal-ai/any-llm";
  await submit(path, { "x-request-id": "fal-text-1" });
  gateway.fal.end({ body: textResult });
  expect(await costOf("fal-text-1")).toBe(12n * 250n + 34n * 2_000n);
  await submit(path, { "x-request-id": "fal-text-2" });
  gateway.fal.end({ body: '{"output":"Hello there"}' });
  const { usage } = await gateway.call("fal-text-2");
  expect(usage?.outputTokens).toBe(3);
  expect(usage?.inputTokens).toBeGreaterThan(5);
});

test("a failed job's result is its own, whatever the status; the operator's trouble is not", async () => {
  const { request_id: id } = await submit();
  const at = `/queue/fal-ai/flux/requests/${id}`;
  gateway.fal.end(falError(500, "CUDA out of memory"));
  const look = async () => (await ask(at)).status;
  await expect.poll(look).toBe(500);
  expect(await (await ask(at)).text()).toBe('{"detail":"CUDA out of memory"}');
  gateway.fal.last().result = falError(403, "User is locked. Reason: Exhausted balance.");
  const other = await ask(at);
  expect([other.status, await other.text()]).toEqual([503, expect.not.stringContaining("locked")]);
});

test("an empty cancel passes; a job that fal then ends is cancelled and free", async () => {
  const { request_id: id, cancel_url: url } = await submit("/queue/our/flux", {
    "x-request-id": "falj-cancel",
    "x-callback-url": `${gateway.receiver.origin}/cancelled`,
  });
  // One address contains the gateway's model name, the other fal's.
  expect(url).toBe(`${publicUrl}/fal/queue/fal-ai/flux/requests/${id}/cancel`);
  const stopped = await ask(`/queue/our/flux/requests/${id}/cancel`, { method: "PUT" });
  expect([stopped.status, await stopped.text()]).toEqual([
    202,
    '{"status":"CANCELLATION_REQUESTED"}',
  ]);
  const asked = gateway.queue.requests.filter(({ method }) => method === "PUT");
  expect(asked.map((each) => each.url)).toEqual([`/fal-ai/flux/requests/${id}/cancel`]);
  const again = await ask(`/queue/fal-ai/flux/requests/${id}/cancel`, { method: "PUT" });
  expect([again.status, await again.text()]).toEqual([400, '{"status":"ALREADY_COMPLETED"}']);
  expect(await costOf("falj-cancel")).toBe(0n);
  const last = () =>
    JSON.parse(gateway.receiver.received.at(-1)?.body.toString() ?? "{}") as object;
  await expect.poll(last).toMatchObject({ status: "cancelled" });
});

test("a stream of job events has the gateway's addresses, wherever it is cut", async () => {
  const { request_id: id } = await submit();
  const response = await ask(`/queue/fal-ai/flux/requests/${id}/status/stream?logs=0`);
  const text = await response.text();
  const at = `${publicUrl}/fal/queue/fal-ai/flux/requests/${id}`;
  expect(text.match(/"(?:response|status|cancel)_url": ?"[^"]*"/g)).toEqual(
    ["a", "b"].flatMap(() => [
      `"response_url":"${at}"`,
      `"status_url":"${at}/status"`,
      `"cancel_url": "${at}/cancel"`,
    ]),
  );
  expect(text.endsWith("}\r\n\r\n")).toBe(true);
});

test("R-VND-3, pitfall 3: another account's job is 404 on each of its addresses, and fal is not asked", async () => {
  const { request_id: id } = await submit();
  gateway.queue.clear();
  const app = "/queue/fal-ai/flux/requests";
  const paths = [`${app}/${id}`, `${app}/${id}/status`, `${app}/${id}/status/stream`];
  for (const path of [...paths, ...paths.map((each) => each.replace(id, "unknown"))]) {
    const response = await ask(path, { who: path.includes(id) ? stranger : customer });
    expect([path, response.status]).toEqual([path, 404]);
    expect(await response.json()).toMatchObject({ code: "not_found", detail: expect.any(String) });
  }
  const stop = await ask(`${app}/${id}/cancel`, { method: "PUT", who: stranger });
  expect(stop.status).toBe(404);
  // Workers look at jobs meanwhile, at this one for its status only.
  const asked = gateway.queue.requests.filter(({ url }) => url.includes(id));
  expect(asked.filter(({ url }) => !url.endsWith("/status?logs=1"))).toEqual([]);
});

test("R-ERR-3, R-ERR-5: a locked account is 503, a lost answer is 500 that fal's client does not repeat", async () => {
  gateway.fal.next = falError(403, "User is locked. Reason: Exhausted balance.");
  expect((await ask(flux, { method: "POST", body: hi })).status).toBe(503);
  gateway.fal.next = { body: '{"request_id":', isCut: true };
  const lost = await ask(flux, { method: "POST", body: hi });
  expect([lost.status, lost.headers.get("x-should-retry")]).toEqual([500, "false"]);
  expect(await lost.json()).toMatchObject({ code: "upstream_submit_unknown" });
});

/** fal's client has no setting for its address: its middleware moves it. */
const moved = (url: string): string =>
  url
    .replace("https://queue.fal.run/", `${gateway.url}/fal/queue/`)
    .replace(publicUrl, gateway.url);

test("@fal-ai/client submits with a webhook, reads status and a stream of news, gets the result, and cancels", async () => {
  const client = createFalClient({
    credentials: customer.key,
    requestMiddleware: async (request) => ({ ...request, url: moved(request.url) }),
  });
  const webhookUrl = `${gateway.receiver.origin}/fal`;
  const asked = { input: { prompt: "a lighthouse" }, webhookUrl };
  const { request_id: requestId } = await client.queue.submit("our/flux", asked);
  expect((await client.queue.status("our/flux", { requestId, logs: true })).status).toBe(
    "IN_QUEUE",
  );
  gateway.fal.end(pictures(1, "1"));
  const done = await client.queue.subscribeToStatus("our/flux", { requestId, mode: "streaming" });
  expect(done.status).toBe("COMPLETED");
  await client.queue.subscribeToStatus("our/flux", { requestId, pollInterval: 100 });
  const result = await client.queue.result("our/flux", { requestId });
  expect(result.requestId).toBe(requestId);
  expect(result.data).toMatchObject({ images: [{ content_type: "image/png" }] });
  await expect(client.queue.cancel("our/flux", { requestId })).rejects.toMatchObject({
    status: 400,
  });
  const said = () =>
    gateway.receiver.received
      .filter(({ path }) => path === "/fal")
      .map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>)
      .at(-1);
  const told = { callback_id: requestId, status: "completed" };
  await expect.poll(said).toMatchObject(told);
  expect(said()?.["external_data"]).toMatchObject({
    vendor: "fal",
    vendor_task_id: requestId,
    vendor_status: "COMPLETED",
  });
});

test("@ai-sdk/fal generates a video", async () => {
  const fal = createFal({
    apiKey: customer.key,
    // It sends its key to fal's own host only, and follows addresses without it.
    fetch: (url, init) => {
      const headers = { ...(init?.headers as object), authorization: `Key ${customer.key}` };
      return fetch(moved(url instanceof Request ? url.url : url.toString()), { ...init, headers });
    },
  });
  const model = fal.video("veo3");
  const started = await model.doStart?.({ prompt: "x", n: 1, providerOptions: {} } as never);
  const { operation } = started as { operation: unknown };
  const look = () => model.doStatus?.({ operation, providerOptions: {} } as never);
  expect(await look()).toMatchObject({ status: "pending" });
  const url = `${gateway.queue.origin}/files/1.mp4`;
  gateway.fal.end({ body: JSON.stringify({ video: { url, content_type: "video/mp4" } }) });
  await expect.poll(look).toMatchObject({ status: "completed", videos: [{ url }] });
});
