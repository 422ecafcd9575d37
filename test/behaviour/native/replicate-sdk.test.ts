/**
 * Replicate's own client and the AI SDK's against the gateway, with nothing changed but the key and
 * the address.
 */
import { createReplicate } from "@ai-sdk/replicate";
import { generateImage } from "ai";
import { Pool } from "pg";
import Replicate from "replicate";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Customer } from "../../support/gateway.ts";
import { type ReplicateGateway, startReplicateGateway } from "./replicate-gateway.ts";

let gateway: ReplicateGateway;
let customer: Customer;
let client: Replicate;

beforeAll(async () => {
  gateway = await startReplicateGateway();
  customer = await gateway.customer();
  client = new Replicate({ auth: customer.key, baseUrl: `${gateway.url}/replicate/v1` });
});

afterAll(async () => {
  expect(gateway.vendor.violations).toEqual([]);
  await gateway.close();
});

test("replicate: run waits and gives the output", async () => {
  const output = await client.run("labs/flux", {
    input: { prompt: "a lighthouse" },
    wait: { mode: "block" },
    useFileOutput: false,
  } as Parameters<Replicate["run"]>[1]);
  expect(output).toEqual([`${gateway.vendor.origin}/files/out.png`]);
});

test("replicate: create, wait by polling, cancel, list with pages", async () => {
  const made = await client.predictions.create({
    model: "labs/flux",
    input: { prompt: "a" },
    webhook: "https://receiver.example/hook",
    webhook_events_filter: ["completed"],
  });
  expect(made.status).toBe("starting");
  const prediction = gateway.replicate.last();
  const waiting = client.wait(made, { interval: 50 });
  prediction.status = "succeeded";
  prediction.output = [`${gateway.vendor.origin}/files/a.png`];
  expect((await waiting).output).toEqual(prediction.output);
  const other = await client.predictions.create({ model: "labs/flux", input: {} });
  expect((await client.predictions.cancel(other.id)).status).toBe("canceled");
  const ids: string[] = [];
  for await (const page of client.paginate(() => client.predictions.list())) {
    ids.push(...page.map(({ id }) => id));
  }
  expect(ids.slice(0, 2)).toEqual([other.id, made.id]);
});

test("replicate: paginate returns all jobs of the account, page by page", async () => {
  const owner = await gateway.customer();
  const own = new Replicate({ auth: owner.key, baseUrl: `${gateway.url}/replicate/v1` });
  const made: string[] = [];
  // One more than fits into a page.
  for (let count = 0; count < 101; count++) {
    const { id } = await own.predictions.create({ model: "labs/flux", input: { prompt: "a" } });
    gateway.replicate.last().status = "failed";
    made.push(id);
  }
  const pages: string[][] = [];
  for await (const page of own.paginate(() => own.predictions.list())) {
    pages.push(page.map(({ id }) => id));
  }
  expect(pages.map((page) => page.length)).toEqual([100, 1]);
  expect(pages.flat()).toEqual(made.toReversed());
});

test("replicate: a text model answers whole and streamed, and is charged by its tokens", async () => {
  const run = async (id: string, prompt: string): Promise<unknown> => {
    const headers = new Headers({ "x-request-id": id });
    const named = new Replicate({
      auth: customer.key,
      baseUrl: `${gateway.url}/replicate/v1`,
      useFileOutput: false,
      fetch: (url: string | URL | Request, init?: RequestInit) => {
        for (const [name, value] of new Headers(init?.headers)) headers.set(name, value);
        return fetch(url, { ...init, headers });
      },
    });
    return named.run("labs/llama", { input: { prompt, max_tokens: 50 } });
  };
  expect(await run("text-1", "Hi")).toEqual(["Hel", "lo ", "https://a.example"]);
  const call = await gateway.call("text-1");
  expect([call.usage?.inputTokens, call.usage?.outputTokens]).toEqual([12, 34]);
  expect(call.cost?.amountNanos).toBe(12n * 250n + 34n * 2_000n);
  // Nothing is reported: four bytes of the texts are a token.
  await run("text-2", "uncounted");
  const estimated = await gateway.call("text-2");
  expect([estimated.usage?.inputTokens, estimated.usage?.outputTokens]).toEqual([3, 6]);
  let text = "";
  for await (const { event, data } of client.stream("labs/llama", { input: { prompt: "a" } })) {
    if (event === "output") text += data;
  }
  expect(text).toBe("Hello");
});

test("replicate: a model that only its own API offers is refused elsewhere with its address", async () => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "writer", messages: [{ role: "user", content: "Hi" }] }),
  });
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringContaining("/replicate"),
  ]);
  const task = await fetch(`${gateway.url}/api/ai/tasks`, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
    body: JSON.stringify({ modelKey: "writer", textParams: { prompt: "Hi" } }),
  });
  expect([task.status, await task.text()]).toEqual([400, expect.stringContaining("modelKey")]);
  const listed = await fetch(`${gateway.url}/v1/models`, {
    headers: { authorization: `Bearer ${customer.key}` },
  });
  const { data } = (await listed.json()) as { data: { id: string; endpoints: string[] }[] };
  expect(data.find(({ id }) => id === "writer")?.endpoints).toEqual([]);
});

test("replicate: a file among the inputs is uploaded, and the vendor gets its own address", async () => {
  await client.run("labs/flux", {
    input: { prompt: "a", image: Buffer.from("bytes") },
    wait: { mode: "block" },
    useFileOutput: false,
  } as Parameters<Replicate["run"]>[1]);
  const { input } = gateway.replicate.last();
  expect(input).toMatchObject({ image: `${gateway.vendor.origin}/v1/files/file1` });
});

test("replicate: stream follows an address without a key", async () => {
  let text = "";
  for await (const { event, data } of client.stream("labs/flux", { input: { prompt: "a" } })) {
    if (event === "output") text += data;
  }
  expect(text).toBe("Hello");
  gateway.replicate.last().status = "failed";
});

test("replicate: files, models, and errors as its client reads them", async () => {
  const file = await client.files.create(Buffer.from("bytes"));
  expect(file.urls.get).toBe(`${gateway.url}/replicate/v1/files/file1`);
  expect((await client.files.get(file.id)).id).toBe("file1");
  expect((await client.models.get("labs", "flux")).name).toBe("flux");
  const limited = await gateway.customer({ models: ["flux", "pinned"] });
  const shown = new Replicate({ auth: limited.key, baseUrl: `${gateway.url}/replicate/v1` });
  const { results } = await shown.models.list();
  expect(results.map(({ owner, name }) => `${owner}/${name}`)).toEqual([
    "labs/flux",
    "labs/pinned",
  ]);
  await expect(shown.models.get("labs", "film")).rejects.toThrow(/403.*access_denied/);
  const versions = await client.models.versions.list("labs", "flux");
  expect(versions).toMatchObject({ results: [{ id: "v1" }] });
  const poor = await gateway.customer({ balanceNanos: 0n });
  const broke = new Replicate({ auth: poor.key, baseUrl: `${gateway.url}/replicate/v1` });
  await expect(broke.predictions.create({ model: "labs/flux", input: {} })).rejects.toThrow(
    /402.*insufficient_balance/,
  );
});

test("replicate: paginate goes through all pages of predictions, and back again", async () => {
  const who = await gateway.customer();
  const pool = new Pool({ connectionString: gateway.databaseUrl, max: 1 });
  await pool.query(
    `insert into native_job (task_id, account_id, vendor, word, vendor_id, status, body)
     select ('01890000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, $1, 'replicate', 'predictions',
       'page' || n, 'succeeded', convert_to('{"id":"page' || n || '"}', 'UTF8')
     from generate_series(1, 250) n`,
    [who.accountId],
  );
  await pool.end();
  const paging = new Replicate({ auth: who.key, baseUrl: `${gateway.url}/replicate/v1` });
  const pages: string[][] = [];
  for await (const page of paging.paginate(() => paging.predictions.list())) {
    pages.push(page.map(({ id }) => id));
  }
  expect(pages.map(({ length }) => length)).toEqual([100, 100, 50]);
  expect(pages.flat()).toEqual(Array.from({ length: 250 }, (_, at) => `page${250 - at}`));
  const read = async (url: string): Promise<{ previous: string; results: { id: string }[] }> => {
    const reply = await fetch(url, { headers: { authorization: `Bearer ${who.key}` } });
    return (await reply.json()) as { previous: string; results: { id: string }[] };
  };
  const first = (await paging.predictions.list()) as unknown as { next: string; previous: null };
  expect(first.previous).toBeNull();
  const second = await read(first.next);
  const back = await read(second.previous);
  expect(back.results.map(({ id }) => id)).toEqual(pages[0]);
  expect(back.previous).toBeNull();
});

test("@ai-sdk/replicate generates an image", async () => {
  const replicate = createReplicate({
    apiToken: customer.key,
    baseURL: `${gateway.url}/replicate/v1`,
  });
  // Its own guard fetches no picture of this machine: one that comes with the answer.
  const prompt = "inline";
  const { image } = await generateImage({ model: replicate.image("labs/flux"), prompt });
  expect(image.mediaType).toBe("image/png");
});
