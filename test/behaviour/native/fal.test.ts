/** `/fal`: direct calls and streams, over raw HTTP and by the clients of fal and of the AI SDK. */
import { createFal } from "@ai-sdk/fal";
import { ApiError, createFalClient, ValidationError } from "@fal-ai/client";
import { generateImage } from "ai";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { inertHeaders } from "../../../src/edge/inert-reply.ts";
import type { Customer } from "../../support/gateway.ts";
import {
  type FalGateway,
  falError,
  falEvents,
  falResult,
  startFalGateway,
  textResult,
} from "./fal-vendor.ts";

let gateway: FalGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startFalGateway();
  customer = await gateway.customer();
});

beforeEach(() => {
  gateway.run.clear();
  gateway.fal.billed = undefined;
});

afterAll(async () => {
  expect([...gateway.run.violations, ...gateway.queue.violations]).toEqual([]);
  await gateway.close();
});

const flux = "/run/fal-ai/flux/schnell";
const hi = JSON.stringify({ prompt: "a lighthouse" });

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${gateway.url}/fal${path}`, {
    method: "POST",
    body: hi,
    ...init,
    headers: {
      "content-type": "application/json",
      authorization: `Key ${customer.key}`,
      ...(init.headers as Record<string, string>),
    },
  });
}

async function costOf(requestId: string): Promise<bigint | undefined> {
  return (await gateway.call(requestId)).cost?.amountNanos;
}

test("R-VND-2: a direct call passes byte for byte, its headers by the list", async () => {
  const sent = `{ "prompt":"a lighthouse","seed":9007199254740993,\r\n "strength": 0.10}`;
  const response = await ask(flux, {
    body: sent,
    headers: { "x-request-id": "fal-1", "x-fal-runner-hint": "h", "x-fal-target-url": "http://x" },
  });
  expect([response.status, await response.text()]).toEqual([200, falResult]);
  const [asked] = gateway.run.requests;
  expect([asked?.url, asked?.body.toString()]).toEqual(["/fal-ai/flux/schnell", sent]);
  expect(asked?.headers).toMatchObject({ "x-fal-runner-hint": "h" });
  expect(asked?.headers["x-fal-target-url"]).toBeUndefined();
  const names = [...response.headers.keys()].toSorted();
  const ours = [
    ...["connection", "content-length", "content-type", "date", "keep-alive"],
    ...Object.keys(inertHeaders),
  ];
  expect(names.filter((name) => !ours.includes(name))).toEqual([
    "x-fal-request-id",
    "x-request-id",
  ]);
  expect(response.headers.get("x-request-id")).toBe("fal-1");
  expect(await costOf("fal-1")).toBe(3_000_000n);
});

test("fal's billed units are charged, or the generated units where it reports none", async () => {
  const rows: readonly (readonly [string, string, string | undefined, object, bigint])[] = [
    // Megapixels, each begun one counts.
    ["fal-b1", "fal-ai/flux/schnell", "1.6", {}, 6_000_000n],
    ["fal-b2", "fal-ai/flux/schnell", undefined, { num_images: 4 }, 3_000_000n],
    ["fal-b3", "fal-ai/veo3", "8", { duration: "8s" }, 3_200_000_000n],
    ["fal-b4", "fal-ai/veo3", undefined, { duration: 8 }, 1_800_000_000n],
    ["fal-b5", "fal-ai/f5-tts", undefined, { duration: 3 }, 3_000_000n],
    ["fal-b6", "fal-ai/f5-tts", "nonsense", {}, 10_000_000n],
    // Characters of all texts to speak, whatever fal's own unit is.
    ["fal-b7", "fal-ai/kokoro", "0.013", { text: "Good evening" }, 260_000n],
  ];
  for (const [requestId, model, billed, more, cost] of rows) {
    gateway.fal.billed = billed;
    const body = JSON.stringify({ prompt: "x", ...more });
    const response = await ask(`/run/${model}`, { body, headers: { "x-request-id": requestId } });
    expect([requestId, response.status]).toEqual([requestId, 200]);
    expect([requestId, await costOf(requestId)]).toEqual([requestId, cost]);
  }
});

test("R-MON-2: the hold covers the most that the request can cost", async () => {
  const schnell = "fal-ai/flux/schnell";
  const rows: readonly (readonly [bigint, string, object])[] = [
    [3_000_000n, schnell, {}],
    [12_000_000n, schnell, { num_images: 4 }],
    [24_000_000n, schnell, { num_images: 2, image_size: { width: 2e3, height: 2e3 } }],
    // fal takes texts for numbers.
    [12_000_000n, schnell, { num_images: " 4" }],
    [12_000_000n, schnell, { width: 2000, height: "2_000" }],
    [4_000_000_000n, "fal-ai/veo3", { duration: "5" }],
    [5_200_000_000n, "fal-ai/veo3", { duration: "13s" }],
    [4_800_000_000n, "fal-ai/veo3", { duration: 0.001, seconds_total: 12 }],
    [4_000_000_000n, "fal-ai/veo3", { duration: "auto" }],
    [4_000_000_000n, "fal-ai/veo3", {}],
    [4_000_000_000n, "fal-ai/veo3", { num_frames: 80 }],
    [8_000_000_000n, "fal-ai/veo3", { num_frames: "320", fps: 16, frames_per_second: 24 }],
    [4_000_000_000n, "fal-ai/veo3", { num_frames: "auto" }],
    [260_000n, "fal-ai/kokoro", { text: "Good evening" }],
  ];
  for (const [needed, model, more] of rows) {
    const poor = await gateway.customer({ balanceNanos: needed - 1n });
    const rich = await gateway.customer({ balanceNanos: needed });
    const body = JSON.stringify({ prompt: "x", ...more });
    const send = (key: string) =>
      ask(`/run/${model}`, { body, headers: { authorization: `Key ${key}` } });
    expect([needed, (await send(poor.key)).status]).toEqual([needed, 402]);
    expect([needed, (await send(rich.key)).status]).toEqual([needed, 200]);
  }
  for (const more of [{ num_images: "many" }, { num_images: [4] }, { duration: -1 }]) {
    const model = "duration" in more ? "fal-ai/veo3" : schnell;
    const refused = await ask(`/run/${model}`, { body: JSON.stringify({ prompt: "x", ...more }) });
    expect([more, refused.status]).toEqual([more, 400]);
  }
});

test("a stream keeps its bytes and is charged once", async () => {
  const response = await ask(`${flux}/stream`, { headers: { "x-request-id": "fal-stream" } });
  expect(await response.text()).toBe(falEvents.join(""));
  expect(gateway.run.requests[0]?.url).toBe("/fal-ai/flux/schnell/stream");
  const call = await gateway.call("fal-stream");
  expect([call.ending, call.cost?.amountNanos]).toEqual([CallEnding.COMPLETED, 3_000_000n]);
});

test("pitfall 10: a stream's head does not wait for an event that takes its time", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const headers = { "content-type": "text/event-stream" };
  gateway.fal.next = {
    headers,
    body: (async function* () {
      yield falEvents[0]?.slice(0, 20) ?? "";
      await released;
      yield falEvents.join("").slice(20);
    })(),
  };
  const response = await ask(`${flux}/stream`);
  expect(response.status).toBe(200);
  release();
  expect(await response.text()).toBe(falEvents.join(""));
});

test("pitfall 11: a stream that is cut breaks, and what came is charged", async () => {
  const headers = { "content-type": "text/event-stream" };
  gateway.fal.next = { headers, body: falEvents.slice(0, 2), isCut: true };
  const response = await ask(`${flux}/stream`, { headers: { "x-request-id": "fal-cut" } });
  await expect(response.text()).rejects.toThrow("terminated");
  const call = await gateway.call("fal-cut");
  expect([call.ending, call.cost?.amountNanos]).toEqual([CallEnding.UPSTREAM_FAILED, 3_000_000n]);
});

test("R-ERR-5: if the vendor was called and did not answer, the client must not retry", async () => {
  const type = { "content-type": "text/event-stream" };
  for (const [path, headers] of [
    [flux, { "content-length": "400" }],
    [`${flux}/stream`, type],
  ] as const) {
    gateway.run.clear();
    gateway.fal.next = { body: falResult.slice(0, 40), headers, isCut: true };
    const response = await ask(path);
    expect(response.status).toBe(500);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(await response.json()).toMatchObject({ code: "upstream_submit_unknown" });
    expect(gateway.run.requests).toHaveLength(1);
  }
});

test("pitfall 10: a direct call goes on after its client disconnects, and is charged", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  gateway.fal.next = {
    headers: { "x-fal-billable-units": "2" },
    body: (async function* () {
      await released;
      yield falResult;
    })(),
  };
  const leaving = new AbortController();
  const headers = { "x-request-id": "fal-left" };
  const asking = ask(flux, { headers, signal: leaving.signal });
  await vi.waitUntil(() => gateway.run.requests.length === 1);
  leaving.abort();
  await expect(asking).rejects.toThrow();
  release();
  expect(await costOf("fal-left")).toBe(6_000_000n);
  expect(gateway.run.requests[0]?.left.aborted).toBe(false);
});

test("pitfall 6: a body of nearly 20 MiB passes byte for byte, one of more is 413", async () => {
  const image_url = `data:image/png;base64,${"A".repeat(20 * 1024 * 1024 - 100)}`;
  const body = JSON.stringify({ prompt: "x", image_url });
  expect((await ask(flux, { body })).status).toBe(200);
  expect(gateway.run.requests[0]?.body.equals(Buffer.from(body))).toBe(true);
  expect((await ask(flux, { body: body + " ".repeat(200) })).status).toBe(413);
  expect(gateway.run.requests).toHaveLength(1);
});

test("pitfall 12: trouble with the operator's account is 503 in its form, and an alarm", async () => {
  const locked =
    "User is locked. Reason: Exhausted balance. Top up your balance at fal.ai/dashboard.";
  for (const [status, detail, alarm] of [
    [403, locked, "money"],
    [401, "Invalid Key: no user found", "credential"],
  ] as const) {
    gateway.fal.next = falError(status, detail);
    const response = await ask(flux);
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "30"]);
    const told = await response.text();
    expect(JSON.parse(told)).toMatchObject({ code: "service_unavailable" });
    expect(told).not.toMatch(/locked|Invalid Key/);
    expect(gateway.log.filter((line) => line.includes(`"alarm":"${alarm}"`))).toHaveLength(1);
  }
});

test("R-AUTH-1: the Key scheme comes after the platform's three credential locations", async () => {
  const { key } = customer;
  const wrong = "uas_00000000000000000000000000000000";
  const rows: readonly (readonly [number, string, Record<string, string>])[] = [
    [200, "", { authorization: `Bearer ${key}` }],
    [200, "", { authorization: "", "x-api-key": key }],
    [200, `?api-key=${key}`, { authorization: "" }],
    [200, "", { authorization: `Key ${key}` }],
    [200, "", { authorization: `key ${key}` }],
    [401, "", { authorization: `Key ${key}`, "x-api-key": wrong }],
    [401, `?api-key=${wrong}`, { authorization: `Key ${key}` }],
    [401, "", { authorization: `Token ${key}` }],
    [401, "", { authorization: "" }],
  ];
  for (const [at, [status, query, headers]] of rows.entries()) {
    const response = await ask(flux + query, { headers });
    expect([at, response.status]).toEqual([at, status]);
  }
});

test("R-ERR-1: refusals of the gateway have its form; none reaches the vendor", async () => {
  const other = await gateway.customer({ models: ["our/flux"] });
  const rows: readonly (readonly [number, string, string, string])[] = [
    [401, "invalid_request", "uas_00000000000000000000000000000000", flux],
    [403, "access_denied", other.key, flux],
    [404, "model_not_found", customer.key, "/run/fal-ai/none"],
    [404, "not_found", customer.key, "/fal-ai/flux/schnell"],
    [404, "not_found", customer.key, "/run/fal-ai/flux%2fschnell"],
    [404, "not_found", customer.key, "/run/fal-ai//flux"],
    [404, "not_found", customer.key, "/rest/tokens/"],
  ];
  for (const [status, code, key, path] of rows) {
    const response = await ask(path, { headers: { authorization: `Key ${key}` } });
    expect([path, response.status, await response.json()]).toEqual([
      path,
      status,
      {
        detail: expect.any(String),
        message: expect.any(String),
        code,
        request_id: expect.any(String),
      },
    ]);
  }
  expect([...gateway.run.requests, ...gateway.queue.requests]).toEqual([]);
});

/** fal's client has no setting for its address: its middleware moves it. */
const moved = (url: string): string =>
  url
    .replace(/^https:\/\/fal\.run\//, `${gateway.url}/fal/run/`)
    .replace(/^https:\/\/rest\.fal\.ai\//, `${gateway.url}/fal/rest/`);

test("@fal-ai/client: run, stream and errors", async () => {
  const client = createFalClient({
    credentials: customer.key,
    requestMiddleware: async (request) => ({ ...request, url: moved(request.url) }),
  });
  const input = { prompt: "a lighthouse" };
  const result = await client.run("fal-ai/flux/schnell", { input });
  expect(result.requestId).toBe("fal-request-1");
  expect(result.data).toMatchObject({ images: [{ url: "https://v3.fal.media/files/a/1.png" }] });
  const stream = await client.stream("our/flux", { input });
  let events = 0;
  for await (const _ of stream) events++;
  expect(events).toBe(3);
  expect(await stream.done()).toMatchObject({ progress: 0.3 });
  expect(gateway.run.requests[1]?.url).toBe("/fal-ai/flux/dev/stream");
  const refused = client.run("our/flux", { input: {} });
  await expect(refused).rejects.toThrow(ValidationError);
  const unknown = client.run("fal-ai/none", { input });
  await expect(unknown).rejects.toThrow(ApiError);
  await expect(unknown).rejects.toMatchObject({ status: 404, body: { code: "model_not_found" } });
});

test("@fal-ai/client: a text model answers whole and streamed, and is charged by its tokens", async () => {
  const client = createFalClient({
    credentials: customer.key,
    requestMiddleware: async (request) => ({ ...request, url: moved(request.url) }),
  });
  const cost = 12n * 250n + 34n * 2_000n;
  const input = { prompt: "Hi" };
  const { data } = await client.run("fal-ai/any-llm", { input });
  expect(data).toMatchObject({ output: "Hello" });
  const stream = await client.stream("fal-ai/any-llm", { input });
  let last: unknown;
  for await (const event of stream) last = event;
  expect(last).toMatchObject({ output: "Hello", partial: false });
  const body = JSON.stringify({ ...input, model: "google/gemini" });
  const routed = await ask("/run/fal-ai/router", { body, headers: { "x-request-id": "fal-t1" } });
  expect([routed.status, await routed.text()]).toEqual([200, textResult]);
  expect((await gateway.call("fal-t1")).model).toBe("our/gemini");
  expect(await costOf("fal-t1")).toBe(cost);
  const body2 = JSON.stringify({ ...input, model: "anthropic/opus" });
  for (const path of ["/run/fal-ai/router", "/run/fal-ai/any-llm"]) {
    gateway.run.clear();
    const dearer = await ask(path, { body: body2 });
    expect([dearer.status, await dearer.text()]).toEqual([
      404,
      expect.stringContaining("anthropic/opus"),
    ]);
    expect(gateway.run.requests).toEqual([]);
  }
  await ask("/run/fal-ai/any-llm/stream", { headers: { "x-request-id": "fal-t2" } });
  expect(await costOf("fal-t2")).toBe(cost);
});

test("@fal-ai/client: files of an input are uploaded to fal's storage", async () => {
  const uploads: string[] = [];
  const client = createFalClient({
    credentials: customer.key,
    requestMiddleware: async (request) => ({ ...request, url: moved(request.url) }),
    // fal's storage itself, which takes files without a key.
    fetch: (url, init) => {
      const to = url instanceof Request ? url.url : url.toString();
      if (!to.startsWith("https://v3.fal.media/")) return fetch(url, init);
      uploads.push(`${init?.method} ${to}`);
      return Promise.resolve(Response.json({}));
    },
  });
  const image = new Blob(["bytes"], { type: "image/png" });
  await client.run("our/flux", { input: { prompt: "a lighthouse", image_url: image } });
  expect(uploads).toEqual(["PUT https://v3.fal.media/files/up?sig=1"]);
  const [initiated, asked] = gateway.run.requests;
  expect(initiated?.url).toBe("/storage/upload/initiate?storage_type=fal-cdn-v3");
  expect(asked?.json).toMatchObject({ image_url: "https://v3.fal.media/files/a.png" });
});

test("@ai-sdk/fal generates an image", async () => {
  const fal = createFal({ apiKey: customer.key, baseURL: `${gateway.url}/fal/run` });
  const inline = {
    images: [{ url: "data:image/png;base64,iVBORw0KGgo=", content_type: "image/png" }],
  };
  gateway.fal.next = { body: JSON.stringify(inline) };
  const { image } = await generateImage({ model: fal.image("our/flux"), prompt: "a lighthouse" });
  expect(image.mediaType).toBe("image/png");
  expect(gateway.run.requests[0]?.json).toMatchObject({ prompt: "a lighthouse", num_images: 1 });
});

test.each([
  '{"error":"the runner failed"}',
  '{"detail":"Internal Server Error"}',
  '{"detail":[{"loc":["body"],"msg":"failed","type":"generation_error"}],"error":null}',
])(
  "the error %s under status 200 passes free, streamed and whole, and its record shows it",
  async (error) => {
    for (const model of [flux, "/run/fal-ai/any-llm"]) {
      for (const end of ["", "/stream"]) {
        const [headers, sent] =
          end === ""
            ? [{ "content-type": "application/json" }, error]
            : [{ "content-type": "text/event-stream" }, `data: ${error}\n\n`];
        gateway.run.clear();
        gateway.fal.next = { headers, body: sent };
        const id = `fal-failed-${error.length}-${model.length}${end.replace("/", "-")}`;
        const response = await ask(`${model}${end}`, { headers: { "x-request-id": id } });
        expect([response.status, await response.text()]).toEqual([200, sent]);
        // A job is not started twice.
        expect(gateway.run.requests).toHaveLength(1);
        const call = await gateway.call(id);
        expect([call.ending, call.cost?.amountNanos ?? 0n]).toEqual([
          CallEnding.UPSTREAM_FAILED,
          0n,
        ]);
      }
    }
  },
);
