/** `/replicate`: jobs in the vendor's own form, over raw HTTP. */
import { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { anonymousMessageBytesMax } from "../../../src/core/limits.ts";
import type { Customer } from "../../support/gateway.ts";
import { send, sendBytes } from "../../support/raw-http.ts";
import { often } from "./native-vendor.ts";
import { type ReplicateGateway, startReplicateGateway, version } from "./replicate-gateway.ts";
import { fluxVersion } from "./replicate-vendor.ts";

let gateway: ReplicateGateway;
let customer: Customer;
let stranger: Customer;

beforeAll(async () => {
  // Reported states of jobs are as old as in production here.
  gateway = await startReplicateGateway({ taskTimings: { ...often, refreshMs: 1_000 } });
  [customer, stranger] = await Promise.all([gateway.customer(), gateway.customer()]);
});

beforeEach(() => gateway.vendor.clear());

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

interface Seen {
  readonly id: string;
  readonly status: string;
  readonly urls: Readonly<Record<string, string>>;
}

function ask(path: string, { who = customer, ...init }: RequestInit & { who?: Customer } = {}) {
  return fetch(`${gateway.url}/replicate${path}`, {
    ...init,
    headers: {
      authorization: `Bearer ${who.key}`,
      ...(init.method === "POST" && { "content-type": "application/json" }),
      ...(init.headers as Record<string, string>),
    },
  });
}

async function submit(
  input: object = { prompt: "a lighthouse" },
  more: { path?: string; body?: object; headers?: Record<string, string> } = {},
): Promise<{ response: Response; text: string; seen: Seen }> {
  const { path = "/v1/models/labs/flux/predictions", body = {}, headers = {} } = more;
  const sent = JSON.stringify({ ...body, input });
  const response = await ask(path, { method: "POST", body: sent, headers });
  const text = await response.text();
  return { response, text, seen: JSON.parse(text) as Seen };
}

/** Runs a statement on the gateway's database. */
async function query(text: string, values: readonly unknown[]): Promise<void> {
  const pool = new Pool({ connectionString: gateway.databaseUrl, max: 1 });
  await pool.query(text, [...values]);
  await pool.end();
}

/** Finishes the newest prediction at the vendor. */
function finish(status: string, output: unknown = [`${gateway.vendor.origin}/files/a.png`]): void {
  const prediction = gateway.replicate.last();
  prediction.status = status;
  prediction.output = status === "succeeded" ? output : null;
}

test("R-VND-2: a job's answer passes, its addresses are ours, its money is held", async () => {
  const before = await gateway.money(customer.accountId);
  const { response, text, seen } = await submit({ prompt: "a", num_outputs: 2, seed: 1 });
  expect(response.status).toBe(201);
  expect(text).toContain('"seed": 9007199254740993, "guidance": -0.10, "logs": "see http://127');
  expect(seen.urls["get"]).toBe(`${gateway.url}/replicate/v1/predictions/${seen.id}`);
  expect(seen.urls["cancel"]).toBe(`${seen.urls["get"]}/cancel`);
  expect(seen.urls["web"]).toBe(`https://replicate.com/p/${seen.id}`);
  const held = await gateway.money(customer.accountId);
  expect(held.held - before.held).toBe(6_000_000n);
  finish("succeeded");
  const polled = await ask(`/v1/predictions/${seen.id}`);
  expect(polled.status).toBe(200);
});

test("R-TSK-9, pitfall 14: a job ends and is charged without polls of a client", async () => {
  const { response } = await submit({ prompt: "a" }, { headers: { "x-request-id": "job-1" } });
  expect(response.headers.get("x-request-id")).toBe("job-1");
  finish("succeeded");
  const call = await gateway.call("job-1");
  expect(call.path).toBe("/replicate/v1/models/labs/flux/predictions");
  expect(call.cost?.amountNanos).toBe(3_000_000n);
  expect((await gateway.calls("job-1", 1)).length).toBe(1);
});

test("a job that failed or was canceled costs nothing", async () => {
  await submit({ prompt: "a" }, { headers: { "x-request-id": "job-2" } });
  finish("failed");
  expect((await gateway.call("job-2")).cost?.amountNanos ?? 0n).toBe(0n);
  const { seen } = await submit({ prompt: "a" }, { headers: { "x-request-id": "job-3" } });
  // The SDK sends the type and no body.
  const canceled = await ask(`/v1/predictions/${seen.id}/cancel`, { method: "POST" });
  expect(canceled.status).toBe(200);
  expect(((await canceled.json()) as Seen).status).toBe("canceled");
  const call = await gateway.call("job-3");
  expect(call.cost?.amountNanos ?? 0n).toBe(0n);
});

test("polls are answered from the kept report: the vendor is polled once a moment, and never after the end", async () => {
  const { seen } = await submit();
  await Promise.all(Array.from({ length: 20 }, () => ask(`/v1/predictions/${seen.id}`)));
  const polls = (): number =>
    gateway.vendor.requests.filter(({ url, method }) => method === "GET" && url.includes(seen.id))
      .length;
  expect(polls()).toBeLessThanOrEqual(1);
  finish("succeeded");
  await ask(`/v1/predictions/${seen.id}/cancel`, { method: "POST" });
  const ended = polls();
  for (let count = 0; count < 5; count++) await ask(`/v1/predictions/${seen.id}`);
  expect(polls()).toBe(ended);
});

test("Prefer: wait: a job that is done already is charged at once", async () => {
  const headers = { prefer: "wait", "x-request-id": "job-4" };
  const { seen } = await submit({ prompt: "a" }, { headers });
  expect(seen.status).toBe("succeeded");
  expect((await gateway.call("job-4")).cost?.amountNanos).toBe(3_000_000n);
});

test("R-VND-3, pitfall 3: another account's object is 404, and the vendor is not called", async () => {
  const { seen } = await submit();
  const file = await ask("/v1/files", { method: "POST", body: "bytes" });
  expect(file.status).toBe(201);
  gateway.vendor.clear();
  const paths = [
    ["GET", `/v1/predictions/${seen.id}`],
    ["POST", `/v1/predictions/${seen.id}/cancel`],
    ["GET", "/v1/files/file1"],
    ["DELETE", "/v1/files/file1"],
    ["GET", "/v1/predictions/unknown"],
    ["GET", "/v1/files/unknown"],
  ] as const;
  for (const [method, path] of paths) {
    const response = await ask(path, { method, who: stranger });
    expect([path, response.status]).toEqual([path, 404]);
    expect(await response.json()).toMatchObject({ code: "not_found", status: 404 });
  }
  const input = { image: `${gateway.url}/replicate/v1/files/file1` };
  const used = await ask("/v1/models/labs/flux/predictions", {
    method: "POST",
    body: JSON.stringify({ input }),
    who: stranger,
  });
  expect(used.status).toBe(404);
  expect(gateway.vendor.requests).toEqual([]);
  const own = await submit(input);
  expect(own.response.status).toBe(201);
  expect(gateway.replicate.last().input).toEqual({
    image: `${gateway.vendor.origin}/v1/files/file1`,
  });
  finish("failed");
});

test("pitfall 4: the list has the caller's jobs, page by page, and the operator's own objects are closed", async () => {
  const third = await gateway.customer();
  const made: string[] = [];
  for (let count = 0; count < 3; count++) {
    const response = await ask("/v1/predictions", {
      method: "POST",
      body: JSON.stringify({ version: `labs/pinned:${version}`, input: {} }),
      who: third,
    });
    made.push(((await response.json()) as Seen).id);
    finish("failed");
  }
  const listed = await ask("/v1/predictions", { who: third });
  const page = (await listed.json()) as { results: Seen[]; next: string | null };
  expect(page.results.map(({ id }) => id)).toEqual(made.toReversed());
  expect(page.next).toBeNull();
  for (const path of ["/v1/account", "/v1/webhooks/default/secret", "/v1/files"]) {
    expect([path, (await ask(path)).status]).toEqual([path, 404]);
  }
});

test("a job whose report is too long to keep is listed without its input and output", async () => {
  const who = await gateway.customer();
  const prompt = "a".repeat(1024 * 1024);
  const body = JSON.stringify({ version: `labs/pinned:${version}`, input: { prompt } });
  const made = await ask("/v1/predictions", { method: "POST", body, who });
  const { id } = (await made.json()) as Seen;
  finish("failed");
  const listed = await ask("/v1/predictions", { who });
  const { results } = (await listed.json()) as { results: Seen[] };
  const get = `${gateway.url}/replicate/v1/predictions/${id}`;
  const urls = { get, cancel: `${get}/cancel` };
  const brief = { id, status: expect.any(String), model: "labs/pinned", version, urls };
  expect(results).toEqual([brief]);
  const whole = await ask(get.replace(`${gateway.url}/replicate`, ""), { who });
  expect(await whole.text()).toContain(prompt);
});

test("a model that is configured with its version is read by its owner and name", async () => {
  const paths = ["", "/versions"].map((rest) => `/v1/models/labs/pinned${rest}`);
  for (const path of paths) {
    const response = await ask(path);
    expect([path, response.status]).toEqual([path, 200]);
    // Jobs of earlier tests may still be polled.
    expect(gateway.vendor.requests.map(({ url }) => url)).toContain(path);
  }
  // The version decides what a job costs: without it, there is no such model.
  const job = await ask("/v1/models/labs/pinned/predictions", {
    method: "POST",
    body: '{"input": {}}',
  });
  expect(job.status).toBe(404);
});

test("models are named by owner and name, by version, or by the gateway's name", async () => {
  const rows = [
    ["/v1/predictions", { version: "labs/flux" }, "labs/flux"],
    ["/v1/predictions", { version: "flux" }, "labs/flux"],
    ["/v1/predictions", { version: `labs/pinned:${version}` }, `labs/pinned:${version}`],
    ["/v1/predictions", { version }, `labs/pinned:${version}`],
    ["/v1/predictions", { version: fluxVersion }, fluxVersion],
    ["/v1/predictions", { version: `labs/flux:${fluxVersion}` }, `labs/flux:${fluxVersion}`],
  ] as const;
  for (const [path, body, sent] of rows) {
    const { response } = await submit({ prompt: "a" }, { path, body });
    expect([body, response.status]).toEqual([body, 201]);
    expect(gateway.replicate.last().version).toBe(sent);
    finish("failed");
  }
  const unknown = await submit({}, { path: "/v1/predictions", body: { version: "a".repeat(64) } });
  expect(unknown.response.status).toBe(404);
  const other = `labs/llama:${fluxVersion}`;
  const wrong = await submit({}, { path: "/v1/predictions", body: { version: other } });
  expect(wrong.response.status).toBe(404);
});

test("a version is charged at the price of its model, and the vendor is queried about it once", async () => {
  const path = "/v1/predictions";
  const body = { version: fluxVersion };
  await submit({ prompt: "a" }, { path, body });
  finish("failed");
  gateway.vendor.clear();
  await submit({ prompt: "a" }, { path, body, headers: { "x-request-id": "by-version" } });
  const urls = gateway.vendor.requests.map(({ url }) => url);
  expect(urls.filter((url) => url.includes("/versions/"))).toEqual([]);
  finish("succeeded", [`${gateway.vendor.origin}/files/out.png`]);
  expect((await gateway.call("by-version")).cost?.amountNanos).toBe(3_000_000n);
});

test("a video without a requested length is held for the usual one, and charged by its own", async () => {
  const { response } = await submit(
    { prompt: "a" },
    { path: "/v1/models/labs/film/predictions", headers: { "x-request-id": "timeless" } },
  );
  expect(response.status).toBe(201);
  finish("succeeded", `${gateway.vendor.origin}/files/film-3.mp4`);
  const call = await gateway.call("timeless");
  expect(call.cost?.amountNanos).toBe(150_000_000n);
  expect((call.held?.amountNanos ?? 0n) / 50_000_000n).toBe(10n);
});

test("pitfall 2: the stream's link needs no key, is opaque, and cannot be forged", async () => {
  const { seen } = await submit();
  const stream = seen.urls["stream"] ?? "";
  expect(stream.startsWith(`${gateway.url}/replicate/_s/`)).toBe(true);
  expect(stream).not.toContain(customer.key);
  const response = await fetch(stream, { headers: { accept: "text/event-stream" } });
  expect(await response.text()).toBe(
    "event: output\ndata: Hel\n\nevent: output\ndata: lo\n\nevent: done\ndata: {}\n\n",
  );
  const forged = stream.slice(0, -2) + (stream.endsWith("AA") ? "BB" : "AA");
  expect((await fetch(forged)).status).toBe(404);
  finish("failed");
});

test("a link without a key ends with the key that it was made with, and with its account", async () => {
  const linkOf = async (who: Customer): Promise<string> => {
    const made = await ask("/v1/models/labs/flux/predictions", {
      method: "POST",
      body: '{"input": {"prompt": "a"}}',
      who,
    });
    finish("failed");
    return ((await made.json()) as Seen).urls["stream"] ?? "";
  };
  const statusOf = async (link: string): Promise<number> => {
    const reply = await fetch(link, { headers: { accept: "text/event-stream" } });
    await reply.body?.cancel();
    return reply.status;
  };
  const [disabled, deleted, expired, suspended] = await Promise.all(
    [1, 2, 3, 4].map(() => gateway.customer()),
  );
  const ends: [Customer | undefined, (who: Customer) => Promise<unknown>][] = [
    [disabled, ({ keyId }) => gateway.keys.disableKey({ keyId })],
    [deleted, ({ keyId }) => gateway.keys.deleteKey({ keyId })],
    [
      expired,
      ({ keyId }) =>
        query("update api_key set expire_time = now() - interval '1 s' where id = $1", [keyId]),
    ],
    [suspended, ({ accountId }) => gateway.accounts.suspendAccount({ accountId, reason: "test" })],
  ];
  for (const [who, end] of ends) {
    if (who === undefined) throw new Error("no customer");
    const link = await linkOf(who);
    expect(await statusOf(link)).toBe(200);
    await end(who);
    expect(await statusOf(link)).toBe(404);
  }
});

test("R-AUTH-7: a request through a link may send at most 64 KiB, announced or in chunks", async () => {
  const url = `${gateway.url}/replicate/_s/anything`;
  const head = `GET /replicate/_s/anything HTTP/1.1\r\nhost: x\r\n`;
  const announced = await sendBytes(url, `${head}content-length: 20971520\r\n\r\n`);
  const body = Buffer.alloc(anonymousMessageBytesMax + 1, " ");
  const headers = { "transfer-encoding": "chunked" };
  const chunked = await send(url, { method: "GET", headers, body });
  for (const { status, body: text } of [announced, chunked]) {
    expect([status, text.toString()]).toEqual([
      413,
      expect.stringContaining("A message without a key or a session"),
    ]);
  }
  const short = await send(url, { method: "GET", headers, body: body.subarray(1) });
  expect(short.status).toBe(404);
});

test("R-ERR-3: the operator's empty account is 503, not the customer's 402", async () => {
  gateway.vendor.answer(() => ({ status: 402, body: '{"detail": "Insufficient credit"}' }));
  const { response, text } = await submit(
    { prompt: "a" },
    { headers: { "x-request-id": "job-5" } },
  );
  expect(response.status).toBe(503);
  expect(text).not.toContain("credit");
  const call = await gateway.call("job-5");
  expect([call.errorCode, call.cost?.amountNanos ?? 0n]).toEqual(["service_unavailable", 0n]);
});

test("R-ERR-5, pitfall 13: where it is unknown whether the job runs, no SDK submits it again", async () => {
  for (const isCut of [true, false]) {
    gateway.vendor.clear();
    gateway.vendor.answer(() => ({ status: isCut ? 201 : 502, body: "{", isCut }));
    const { response, seen } = await submit({ prompt: "a" });
    expect(response.status).toBe(500);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(seen).toMatchObject({ code: "upstream_submit_unknown" });
    // Others are polled meanwhile.
    expect(gateway.vendor.requests.filter(({ method }) => method === "POST").length).toBe(1);
  }
});

test("a free request whose answer breaks off is the vendor's failure, not the gateway's", async () => {
  gateway.vendor.answer(() => ({ status: 201, body: '{"id":', isCut: true }));
  const response = await ask("/v1/files", {
    method: "POST",
    body: "bytes",
    headers: { "x-request-id": "broken-file" },
  });
  expect(response.status).toBe(502);
  expect(await response.json()).toMatchObject({ code: "upstream_error" });
  const defects = gateway.log.filter((line) => /"level":50/.test(line));
  expect(defects.filter((line) => line.includes("broken-file"))).toEqual([]);
});

test("pitfall 10: a client that disconnects changes nothing: the job is tracked, and charged", async () => {
  const leaving = new AbortController();
  let arrive = (): void => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  let left: AbortSignal | undefined;
  gateway.vendor.answer(async (asked) => {
    if (asked.method === "POST") {
      left = asked.left;
      arrive();
      await released;
    }
    const output = [`${gateway.vendor.origin}/files/b.png`];
    return { status: 201, body: JSON.stringify({ id: "left1", status: "succeeded", output }) };
  });
  const asking = ask("/v1/models/labs/flux/predictions", {
    method: "POST",
    body: '{"input": {}}',
    headers: { "x-request-id": "job-6" },
    signal: leaving.signal,
  });
  await arrived;
  leaving.abort();
  await expect(asking).rejects.toThrow();
  release();
  expect((await gateway.call("job-6")).cost?.amountNanos).toBe(3_000_000n);
  expect(left?.aborted).toBe(false);
  expect((await ask("/v1/predictions/left1")).status).toBe(200);
});
