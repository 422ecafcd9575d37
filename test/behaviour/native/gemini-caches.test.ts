/** `/gemini`: prompt caches, what they cost, and whose they are. */
import { GoogleGenAI } from "@google/genai";
import { GoogleGenAI as GoogleGenAI2 } from "genai-v2";
import { Pool } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { CredentialConfig } from "../../../src/config/config.ts";
import { detachedReplies } from "../disconnect/leaver.ts";
import { type Customer, type Gateway, priceDefault, startGateway } from "../../support/gateway.ts";
import { type CacheVendor, startCacheVendor } from "./gemini-cache-vendor.ts";

let vendor: CacheVendor;
let gateway: Gateway;
let pool: Pool;
let customer: Customer;
let stranger: Customer;

const credential = (name: string): CredentialConfig => ({
  ...{ name, apiKey: `secret-${name}`, weight: 1, priority: 0 },
});
const price = { ...priceDefault, cacheStorage: 1_000_000_000n };

beforeAll(async () => {
  vendor = await startCacheVendor(["secret-K1", "secret-K2", "secret-K3"]);
  const route = (model: string) => ({ routes: [{ vendor: "gemini", model }] });
  gateway = await startGateway({
    vendors: {
      gemini: {
        kind: "gemini",
        baseUrl: vendor.origin,
        credentials: [credential("K1"), credential("K2"), credential("K3")],
        nativePrefix: "/gemini",
        // Caches are read to their end nevertheless.
        onDisconnect: "abort",
      },
    },
    models: {
      "gemini-x": { ...route("gemini-x"), price },
      "our/name": { ...route("gemini-y"), price },
      "gemini-audio": { ...route("gemini-audio"), price: { ...price, audioInput: 1_000_000_000n } },
      "gemini-plain": route("gemini-plain"),
      "gemini-image": { ...route("gemini-image"), type: ModelType.IMAGE },
    },
  });
  pool = new Pool({ connectionString: gateway.databaseUrl, max: 1 });
  [customer, stranger] = await Promise.all([gateway.customer(), gateway.customer()]);
});

afterEach(() => {
  Object.assign(vendor, { tokens: 100_000, aheadMs: 0, isCut: false, onAnswer: undefined });
  vendor.requests.length = 0;
});

afterAll(async () => {
  expect(vendor.violations).toEqual([]);
  await pool.end();
  await gateway.close();
  await vendor.close();
});

interface Asking {
  readonly method?: string;
  readonly body?: object;
  readonly who?: Customer;
  readonly signal?: AbortSignal;
}

function ask(path: string, { method, body, who = customer, signal }: Asking = {}) {
  return fetch(`${gateway.url}/gemini/v1beta/${path}`, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: { "x-goog-api-key": who.key, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
}

const contents = [{ role: "user", parts: [{ text: "A long book." }] }];
const request = { model: "models/gemini-x", contents, ttl: "7200s" };

interface Described {
  readonly name: string;
  readonly expireTime: string;
  readonly usageMetadata: { readonly totalTokenCount: number };
}

async function make(body: object = request, who = customer): Promise<Described> {
  const response = await ask("cachedContents", { body, who });
  expect(response.status).toBe(200);
  return (await response.json()) as Described;
}

/** The charge of a reply, in nano-USD, once it is settled. */
async function chargeOf(response: Response): Promise<bigint> {
  const { cost } = await gateway.call(response.headers.get("x-request-id") ?? "");
  return cost?.amountNanos ?? 0n;
}

/** Resolves when no call of an account is under way. */
async function settled({ accountId }: Customer): Promise<void> {
  await expect.poll(async () => (await gateway.money(accountId)).held).toBe(0n);
}

/** Returns an account's cost of some work in nano-USD. */
async function spent(who: Customer, work: () => Promise<unknown>): Promise<bigint> {
  await settled(who);
  const before = await gateway.money(who.accountId);
  await work();
  await settled(who);
  return before.balance - (await gateway.money(who.accountId)).balance;
}

const clients = {
  "3.x": (apiKey: string, baseUrl: string) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl } }),
  "2.x": (apiKey: string, baseUrl: string) =>
    new GoogleGenAI2({ apiKey, httpOptions: { baseUrl } }),
};

for (const [version, open] of Object.entries(clients)) {
  test(`@google/genai ${version} creates, reads, lists, prolongs, uses and deletes a cache`, async () => {
    const who = await gateway.customer();
    const client = open(who.key, `${gateway.url}/gemini`);
    const model = "gemini-x";
    const config = { contents, ttl: "3600s", displayName: "book" };
    const made = await client.caches.create({ model, config });
    const name = made.name ?? "";
    expect(made.usageMetadata?.totalTokenCount).toBe(100_000);
    expect((await client.caches.get({ name })).displayName).toBe("book");
    const second = await client.caches.create({ model, config });
    const found: string[] = [];
    const pager = await client.caches.list({ config: { pageSize: 1 } });
    for await (const each of pager) found.push(each.name ?? "");
    expect(found).toEqual([name, second.name ?? ""].toSorted());
    const longer = await client.caches.update({ name, config: { ttl: "7200s" } });
    expect(Date.parse(longer.expireTime ?? "")).toBeGreaterThan(Date.parse(made.expireTime ?? ""));
    const reply = await client.models.generateContent({
      model,
      contents: "Who is it about?",
      config: { cachedContent: name },
    });
    expect(reply.usageMetadata?.cachedContentTokenCount).toBe(100_000);
    await client.caches.delete({ name });
    await expect(client.caches.get({ name })).rejects.toMatchObject({ status: 404 });
    const left: string[] = [];
    for await (const each of await client.caches.list()) left.push(each.name ?? "");
    expect(left).toEqual([second.name]);
  });
}

test("a cache is charged for its tokens at the price of input, and for its storage until it expires", async () => {
  const response = await ask("cachedContents", { body: request });
  const { name } = (await response.json()) as Described;
  // 100,000 tokens at 0.25 per million; 200,000 token-hours at 1 per million.
  expect(await chargeOf(response)).toBe(25_000_000n + 200_000_000n);
  const call = await gateway.call(response.headers.get("x-request-id") ?? "");
  expect(call).toMatchObject({
    path: "/gemini/v1beta/cachedContents",
    model: "gemini-x",
    usage: { inputTokens: 100_000, outputTokens: 0, storedTokenHours: 200_000 },
  });
  const { receipt } = await gateway.callLog.getCall({
    call: { case: "callId", value: call.callId },
  });
  expect(receipt?.lines.map(({ quantity, price: usd, per }) => [quantity, usd, per])).toEqual([
    ["100000", "0.25", 1_000_000],
    ["200000", "1", 1_000_000],
  ]);
  expect(receipt?.recomputed).toEqual(receipt?.amount);
  const used = await ask("models/gemini-x:generateContent", {
    body: { contents, cachedContent: name },
  });
  expect(used.status).toBe(200);
  // 100,000 cached tokens at 0.025, 10 fresh ones at 0.25, 20 of output at 2.
  expect(await chargeOf(used)).toBe(2_500_000n + 2_500n + 40_000n);
});

test("a cache without ttl is stored for an hour, and one until a moment for the time until then", async () => {
  const { ttl: _, ...untimed } = request;
  const hour = await ask("cachedContents", { body: untimed });
  expect(await chargeOf(hour)).toBe(25_000_000n + 100_000_000n);
  vendor.tokens = 3_600;
  const expireTime = new Date(Date.now() + 30 * 60_000).toISOString();
  const half = await ask("cachedContents", { body: { ...untimed, expireTime } });
  const { createTime, expireTime: until } = (await half.json()) as Record<string, string>;
  const seconds = (Date.parse(until ?? "") - Date.parse(createTime ?? "")) / 1_000;
  expect(seconds).toBeLessThanOrEqual(1_800);
  expect(await chargeOf(half)).toBe(900_000n + BigInt(Math.ceil(seconds)) * 1_000n);
});

test("the gateway's name of a model and the vendor's create a cache of the vendor's model", async () => {
  for (const model of ["models/our/name", "models/gemini-y"]) {
    const { name } = await make({ ...request, model });
    expect(vendor.caches.get(name)?.model).toBe("models/gemini-y");
  }
});

test("a change that prolongs a cache is charged for the time that it adds; one that shortens it costs nothing", async () => {
  vendor.tokens = 36_000;
  const start = new Date(Date.now() + 3_600_000);
  const at = (seconds: number) => ({
    expireTime: new Date(start.getTime() + seconds * 1_000).toISOString(),
  });
  const { ttl: _, ...untimed } = request;
  const { name } = await make({ ...untimed, ...at(0) });
  const change = async (seconds: number) => {
    const response = await ask(name, { method: "PATCH", body: at(seconds) });
    expect(response.status).toBe(200);
    return chargeOf(response);
  };
  // 36,000 tokens are 10 token-hours in each second.
  expect(await change(100)).toBe(1_000_000n);
  expect(await change(-1_000)).toBe(0n);
  expect(await change(100)).toBe(0n);
  expect(await change(101)).toBe(10_000n);
  const shown = (await listed(customer)).find((each) => each.name === name);
  expect(shown?.expireTime.slice(0, 23)).toBe(at(101).expireTime.slice(0, 23));
  expect(await spent(customer, () => ask(name, { method: "DELETE" }))).toBe(0n);
});

test("changes of one cache at the same time are charged once for the time that they add together", async () => {
  vendor.tokens = 36_000;
  const start = Date.now() + 3_600_000;
  const at = (seconds: number) => ({ expireTime: new Date(start + seconds * 1_000).toISOString() });
  const { ttl: _, ...untimed } = request;
  const { name } = await make({ ...untimed, ...at(0) });
  const all = Array.from({ length: 8 }, (_each, index) => at((index + 1) * 100));
  const cost = await spent(customer, () =>
    Promise.all(all.map((body) => ask(name, { method: "PATCH", body }))),
  );
  expect(cost).toBe(8_000_000n);
});

test("R-VND-3: a cache belongs to its account: another one cannot read, list, use, change or delete it", async () => {
  const { name } = await make();
  vendor.requests.length = 0;
  const use = { contents, cachedContent: name };
  const rows: readonly (readonly [string, string, object | undefined])[] = [
    ["GET", name, undefined],
    ["PATCH", name, { ttl: "9000s" }],
    ["DELETE", name, undefined],
    ["POST", "models/gemini-x:generateContent", use],
    ["POST", "models/gemini-x:generateContent", { contents, cached_content: name }],
    ["POST", "models/gemini-x:streamGenerateContent?alt=sse", use],
    ["POST", "models/gemini-x:countTokens", { generateContentRequest: use }],
    ["POST", "cachedContents", { ...request, contents: [{ cachedContent: name }] }],
  ];
  for (const [method, path, body] of rows) {
    const response = await ask(path, { method, who: stranger, ...(body && { body }) });
    expect([method, path, response.status]).toEqual([method, path, 404]);
    expect(await response.json()).toMatchObject({
      error: { status: "NOT_FOUND", details: [{ reason: "not_found" }] },
    });
  }
  const others = await ask("cachedContents", { who: stranger });
  expect(await others.json()).toEqual({ cachedContents: [] });
  expect(vendor.requests).toEqual([]);
  expect(vendor.caches.has(name)).toBe(true);
});

test.each([[[null]], [["cachedContents/c1"]], [{}], [7], [true]])(
  "a cache named by %j is a 400, which its vendor does not see and which raises no alarm",
  async (cachedContent) => {
    vendor.requests.length = 0;
    const body = { contents, cachedContent };
    const response = await ask("models/gemini-x:generateContent", { method: "POST", body });
    expect(response.status).toBe(400);
    expect(JSON.stringify(await response.json())).toContain("must be a name such as");
    expect(vendor.requests).toEqual([]);
  },
);

test("everything about a cache goes to the credential that created it", async () => {
  const made = await Promise.all(Array.from({ length: 12 }, () => make()));
  expect(new Set(made.map(({ name }) => vendor.caches.get(name)?.key)).size).toBeGreaterThan(1);
  for (const { name } of made) {
    const body = { contents, cachedContent: name };
    expect((await ask("models/gemini-x:generateContent", { body })).status).toBe(200);
    expect((await ask(name)).status).toBe(200);
    expect((await ask(name, { method: "PATCH", body: { ttl: "60s" } })).status).toBe(200);
    expect((await ask(name, { method: "DELETE" })).status).toBe(200);
  }
});

test("R-TXT-10: a model without a price for storage has no caches, and the error names the price", async () => {
  const body = { ...request, model: "models/gemini-plain" };
  const response = await ask("cachedContents", { body });
  expect(response.status).toBe(400);
  const { error } = (await response.json()) as { error: { message: string } };
  expect(error.message).toContain('no price "cache_storage"');
  expect(vendor.requests).toEqual([]);
  expect(await chargeOf(response)).toBe(0n);
});

test("a request that could not be priced, or says nothing, is refused without asking the vendor", async () => {
  const { name } = await make();
  vendor.requests.length = 0;
  const rows: readonly (readonly [object, string])[] = [
    [{ ...request, ttl: "0s" }, "future"],
    [{ ...request, ttl: "an hour" }, "3600s"],
    [{ ...request, ttl: 3600 }, "3600s"],
    [{ ...request, ttl: "2592001s" }, "30 days"],
    [{ ...request, expireTime: "2100-01-01T00:00:00Z" }, "not both"],
    [{ model: request.model, contents, expireTime: "2100-01-01T00:00:00Z" }, "30 days"],
    [{ model: request.model, contents, expireTime: "tomorrow" }, "2027"],
    [{ model: request.model, contents, expireTime: "2020-01-01T00:00:00Z" }, "future"],
    [{ ...request, tools: [{ googleSearch: {} }] }, "functions only"],
    [{ ...request, tools: [{ google_search: {} }] }, "functions only"],
    [{ ...request, model: "models/gemini-image" }, "IMAGE"],
    [{ contents }, "must name a model"],
    [
      {
        ...request,
        contents: [{ parts: [{ inlineData: { mimeType: "audio/mp3", data: "AA==" } }] }],
      },
      "audio_input",
    ],
  ];
  for (const [body, words] of rows) {
    const response = await ask("cachedContents", { body });
    expect([words, response.status]).toEqual([words, 400]);
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain(
      words,
    );
  }
  const nothing = await ask(name, { method: "PATCH", body: { displayName: "other" } });
  expect(nothing.status).toBe(400);
  const twice = await fetch(`${gateway.url}/gemini/v1beta/${name}`, {
    method: "PATCH",
    headers: { "x-goog-api-key": customer.key, "content-type": "application/json" },
    body: '{"ttl": "1s", "ttl": "9000s"}',
  });
  expect(twice.status).toBe(400);
  expect(vendor.requests).toEqual([]);
});

test("a cache with audio is charged at the price of audio", async () => {
  const audio = [{ parts: [{ inlineData: { mimeType: "audio/mp3", data: "AAAA" } }] }];
  const body = { model: "models/gemini-audio", contents: audio, ttl: "3600s" };
  const response = await ask("cachedContents", { body });
  expect(await chargeOf(response)).toBe(100_000_000n + 100_000_000n);
});

test("a cache that the vendor refuses costs nothing, and the vendor's words pass", async () => {
  const cost = await spent(customer, async () => {
    const response = await ask("cachedContents", { body: { ...request, temperature: 1 } });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('Unknown name \\"temperature\\"');
  });
  expect(cost).toBe(0n);
});

test("a creation without an answer costs nothing, and is not to be repeated", async () => {
  vendor.isCut = true;
  const cost = await spent(customer, async () => {
    const response = await ask("cachedContents", { body: request });
    expect(response.status).toBe(500);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(await response.text()).toContain("upstream_submit_unknown");
  });
  expect(cost).toBe(0n);
  expect(vendor.requests).toEqual(["POST /v1beta/cachedContents"]);
});

test("a cache that costs more than the account has is deleted at the vendor, and costs nothing", async () => {
  const poor = await gateway.customer({ balanceNanos: 10_000_000n });
  const before = new Set(vendor.caches.keys());
  const cost = await spent(poor, async () => {
    expect((await ask("cachedContents", { body: request, who: poor })).status).toBe(402);
  });
  expect(cost).toBe(0n);
  expect(vendor.requests).toEqual([
    "POST /v1beta/cachedContents",
    expect.stringMatching(/^DELETE \/v1beta\/cachedContents\/\w+$/),
  ]);
  expect(new Set(vendor.caches.keys())).toEqual(before);
  expect(await (await ask("cachedContents", { who: poor })).json()).toEqual({ cachedContents: [] });
});

test("a call with a cache holds the tokens of the cache before the vendor is called", async () => {
  const poor = await gateway.customer({ balanceNanos: 226_000_000n });
  const { name } = await make(request, poor);
  await settled(poor);
  vendor.requests.length = 0;
  const body = { contents, cachedContent: name, generationConfig: { maxOutputTokens: 10 } };
  expect((await ask("models/gemini-x:generateContent", { body, who: poor })).status).toBe(402);
  expect(vendor.requests).toEqual([]);
});

/** Sends a request, and disconnects once the vendor has done its work, but before it answers. */
async function leave(path: string, asking: Asking): Promise<void> {
  const left = new AbortController();
  const came = Promise.withResolvers<void>();
  const isGone = Promise.withResolvers<void>();
  vendor.onAnswer = async () => {
    came.resolve();
    await isGone.promise;
  };
  const asked = ask(path, { ...asking, signal: left.signal });
  await came.promise;
  left.abort();
  await expect(asked).rejects.toThrow();
  await expect.poll(() => detachedReplies(gateway)).toBe(1);
  isGone.resolve();
  vendor.onAnswer = undefined;
}

async function listed(who: Customer): Promise<readonly Described[]> {
  const reply = await (await ask("cachedContents", { who })).json();
  return (reply as { cachedContents: Described[] }).cachedContents;
}

test("a cache whose creator disconnected is charged and listed, also with `on_disconnect: abort`", async () => {
  const who = await gateway.customer();
  const cost = await spent(who, async () => {
    await leave("cachedContents", { body: request, who });
    await expect.poll(async () => (await listed(who)).length).toBe(1);
  });
  expect(cost).toBe(225_000_000n);
  const [made] = await listed(who);
  expect((await ask(made?.name ?? "", { method: "DELETE", who })).status).toBe(200);
});

test("a longer life of a cache is charged if its client disconnected, also with `on_disconnect: abort`", async () => {
  const who = await gateway.customer();
  vendor.tokens = 3_600;
  const { name, expireTime } = await make(request, who);
  const longer = new Date(Date.parse(expireTime) + 100_000).toISOString();
  const cost = await spent(who, async () => {
    await leave(name, { method: "PATCH", body: { expireTime: longer }, who });
    await expect
      .poll(async () => (await listed(who))[0]?.expireTime.slice(0, 23))
      .toBe(longer.slice(0, 23));
  });
  expect(cost).toBe(100_000n);
});

test("a cache that the vendor has dropped is 404 in every request, and raises no alarm", async () => {
  const { name } = await make();
  vendor.caches.delete(name);
  const body = { contents, cachedContent: name };
  const replies = [
    await ask("models/gemini-x:generateContent", { body }),
    await ask(name),
    await ask(name, { method: "PATCH", body: { ttl: "9000s" } }),
    await ask(name, { method: "DELETE" }),
  ];
  for (const reply of replies) {
    expect(reply.status).toBe(404);
    expect(await reply.text()).toContain("not_found");
  }
  expect(
    gateway.log.filter((line) => line.includes("a vendor refuses the operator's account")),
  ).toEqual([]);
  expect((await ask("cachedContents", { body: request })).status).toBe(200);
});

test("a cache exists only as long as its storage is paid, whatever the vendor's clock says", async () => {
  vendor.aheadMs = 3_600_000;
  const { name } = await make({ ...request, ttl: "60s" });
  const { rows } = await pool.query<{ seconds: number }>(
    `select extract(epoch from expire_time - now())::float8 as seconds from native_object where name = $1`,
    [name],
  );
  expect(rows[0]?.seconds).toBeLessThan(121);
  await pool.query(
    "update native_object set expire_time = now() - interval '1 second' where name = $1",
    [name],
  );
  vendor.requests.length = 0;
  expect((await ask(name)).status).toBe(404);
  expect((await ask(name, { method: "PATCH", body: { ttl: "60s" } })).status).toBe(404);
  const body = { contents, cachedContent: name };
  expect((await ask("models/gemini-x:generateContent", { body })).status).toBe(404);
  expect((await listed(customer)).map((each) => each.name)).not.toContain(name);
  expect(vendor.requests).toEqual([]);
});

test("objects of two credentials in one request are refused with a list of what belongs together, and cost nothing", async () => {
  const made = await Promise.all(Array.from({ length: 12 }, () => make()));
  const names = made.map(({ name }) => name);
  const byKey = [...Map.groupBy(names, (name) => vendor.caches.get(name)?.key).values()];
  const [[one = "", alike = ""] = [], [other = ""] = []] = byKey.toSorted(
    (a, b) => b.length - a.length,
  );
  vendor.requests.length = 0;
  const parts = [one, other, alike].map((cachedContent) => ({ text: "Hi", cachedContent }));
  const bodies: readonly (readonly [string, object])[] = [
    ["models/gemini-x:generateContent", { contents: [{ parts }] }],
    ["models/gemini-x:streamGenerateContent?alt=sse", { contents: [{ parts }] }],
    ["models/gemini-x:countTokens", { contents: [{ parts }] }],
    ["cachedContents", { ...request, contents: [{ parts }] }],
  ];
  const cost = await spent(customer, async () => {
    for (const [path, body] of bodies) {
      const response = await ask(path, { body });
      const { error } = (await response.json()) as { error: { message: string; status: string } };
      expect([path, response.status, error.status]).toEqual([path, 400, "INVALID_ARGUMENT"]);
      const groups = /separately: (.*)\. Use them/.exec(error.message)?.[1]?.split("; ") ?? [];
      expect(groups.map((group) => group.replaceAll('"', "").split(" and ").toSorted())).toEqual(
        expect.arrayContaining([[one, alike].toSorted(), [other]]),
      );
    }
  });
  expect(cost).toBe(0n);
  expect(vendor.requests).toEqual([]);
});

test("an interaction with a cache is refused: its hold would not cover the tokens of the cache", async () => {
  const { name } = await make();
  vendor.requests.length = 0;
  const body = { model: "gemini-x", input: "Hi", cached_content: name };
  const response = await ask("interactions", { body });
  expect(response.status).toBe(400);
  expect(vendor.requests).toEqual([]);
});
