/** POST /v1/embeddings: passed on as it is, charged by what was read. */
import OpenAI from "openai";
import OpenAIV6 from "openai-v6";
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { errorOf, expectFree, expectRefused, newRequestId, useGateway } from "../../harness.ts";

const secret = "sk-embeddings-vendor";
const running: { vendor?: PlainVendor } = {};
const reply = {
  object: "list",
  data: [{ object: "embedding", index: 0, embedding: [0.25, -1.5e-7] }],
  model: "vendor-embed",
  usage: { prompt_tokens: 12, total_tokens: 12 },
  unknown: { kept: true },
};
beforeAll(async () => {
  running.vendor = await startPlainVendor(() => ({ body: JSON.stringify(reply) }));
});
beforeEach(() => {
  vendor().requests.length = 0;
  vendor().answer = () => ({ body: JSON.stringify(reply) });
});
afterAll(() => running.vendor?.close());

function vendor(): PlainVendor {
  if (running.vendor === undefined) throw new Error("not started");
  return running.vendor;
}

const route = { routes: [{ vendor: "embedder", model: "vendor-embed" }] };
const fixture = useGateway(() => ({
  vendors: {
    embedder: { baseUrl: `${vendor().url}/v1`, apiKey: secret, kind: "openai-compatible" },
    openai: { baseUrl: `${vendor().url}/v1`, apiKey: secret, kind: "openai" },
    dashscope: { baseUrl: vendor().url, apiKey: secret, kind: "dashscope" },
    anthropic: { baseUrl: vendor().url, apiKey: secret, kind: "anthropic" },
  },
  models: {
    embed: route,
    "vendor-embed": route,
    "openai-embed": {
      type: ModelType.EMBEDDING,
      routes: [{ vendor: "openai", model: "text-embedding-3-small" }],
    },
    "dashscope-embed": { routes: [{ vendor: "dashscope", model: "text-embedding-v4" }] },
    painter: { type: ModelType.IMAGE, routes: [{ vendor: "openai", model: "gpt-image-1" }] },
    "text-only": { routes: [{ vendor: "anthropic", model: "claude" }] },
  },
}));
const ask = { model: "embed", input: "Hello" };

function embed(body: unknown, headers: Readonly<Record<string, string>> = {}) {
  return fixture.send("/v1/embeddings", { body: JSON.stringify(body), headers });
}

describe("the official SDK", () => {
  it.each([
    ["7", OpenAI],
    ["6", OpenAIV6],
  ])("version %s gets vectors from lists and base64", async (_version, Client) => {
    const client = new Client({
      apiKey: fixture.customer.key,
      baseURL: `${fixture.gateway.url}/v1`,
      maxRetries: 0,
    });
    // Without encoding_format the SDK asks for base64 and decodes it itself.
    const floats = Buffer.from(new Float32Array([0.5, -2]).buffer).toString("base64");
    const data = [{ object: "embedding", index: 0, embedding: floats }];
    vendor().answer = () => ({ body: JSON.stringify({ ...reply, data }) });
    const decoded = await client.embeddings.create({ model: "embed", input: ["a", "b"] });
    expect(decoded.data[0]?.embedding).toEqual([0.5, -2]);
    expect(JSON.parse(vendor().requests[0]?.body ?? "")).toEqual({
      model: "vendor-embed",
      input: ["a", "b"],
      encoding_format: "base64",
    });
    vendor().answer = () => ({ body: JSON.stringify(reply) });
    const plain = await client.embeddings.create({
      model: "embed",
      input: [1, 2, 3],
      encoding_format: "float",
    });
    expect(plain).toMatchObject({ ...reply, model: "embed" });
  });
});

describe("base64", () => {
  const lists = {
    ...reply,
    data: [
      { object: "embedding", index: 0, embedding: [0.5, -2] },
      { object: "embedding", index: 1, embedding: [] },
    ],
  };
  const client = (Client: typeof OpenAI | typeof OpenAIV6) =>
    new Client({
      apiKey: fixture.customer.key,
      baseURL: `${fixture.gateway.url}/v1`,
      maxRetries: 0,
    });

  it.each([
    ["7", OpenAI],
    ["6", OpenAIV6],
  ])(
    "is made of lists that a vendor sends instead: version %s of the SDK decodes them",
    async (_version, Client) => {
      vendor().answer = () => ({ body: JSON.stringify(lists) });
      const { data, usage } = await client(Client).embeddings.create({
        model: "embed",
        input: ["a", "b"],
      });
      expect(data.map(({ embedding }) => embedding)).toEqual([[0.5, -2], []]);
      expect(usage.prompt_tokens).toBe(12);
    },
  );

  it("is never asked of DashScope, which has lists only", async () => {
    vendor().answer = () => ({ body: JSON.stringify(lists) });
    const input = { model: "dashscope-embed", input: ["a", "b"], dimensions: 64 };
    const { data, model } = await client(OpenAIV6).embeddings.create(input);
    expect([data[0]?.embedding, model]).toEqual([[0.5, -2], "dashscope-embed"]);
    expect(vendor().requests[0]?.url).toBe("/compatible-mode/v1/embeddings");
    expect(JSON.parse(vendor().requests[0]?.body ?? "")).toEqual({
      ...{ ...input, model: "text-embedding-v4", encoding_format: "float" },
    });
  });

  it("and lists are both left unchanged if they were requested", async () => {
    vendor().answer = () => ({ body: JSON.stringify(lists) });
    for (const body of [ask, { ...ask, encoding_format: "float" }]) {
      const got = await fixture.send("/v1/embeddings", { body: JSON.stringify(body) });
      expect(JSON.parse(got.body.toString())).toEqual({ ...lists, model: "embed" });
    }
  });
});

it("an embeddings call changes the model's name and nothing else, both ways (R-TXT-1)", async () => {
  const sent =
    ' {"input" : ["é\\u00e9", 2.50], "model":"embed" ,"dimensions":1e2,"x":{"model":"embed"}} ';
  const answered =
    ' { "model" : "vendor-embed", "n": 2.50, "data":[{"model":"vendor-embed"}],"usage":{"prompt_tokens":3} }\n';
  vendor().answer = () => ({ body: answered });
  const headers = { "x-request-id": newRequestId() };
  const got = await fixture.send("/v1/embeddings?a=b&api-key=", { body: sent, headers });
  expect(got.body.toString()).toBe(answered.replace('"vendor-embed"', '"embed"'));
  const [request] = vendor().requests;
  expect(request?.body).toBe(sent.replace('"model":"embed"', '"model":"vendor-embed"'));
  expect(request?.url).toBe("/v1/embeddings?a=b");
  expect(request?.headers.authorization).toBe(`Bearer ${secret}`);
  expect(got.headers).toMatchObject(headers);
  expect(got.headers["content-length"]).toBe(String(got.body.length));
});

it("an embeddings call keeps every byte where both names are the same", async () => {
  await embed({ ...ask, model: "vendor-embed" });
  expect(JSON.parse(vendor().requests[0]?.body ?? "")).toMatchObject({ model: "vendor-embed" });
});

it("an embeddings call reaches OpenAI, also at paths with /v1 twice (R-TXT-6)", async () => {
  const got = await fixture.send("/v1/v1/embeddings", {
    body: JSON.stringify({ ...ask, model: "openai-embed" }),
  });
  expect(got.status).toBe(200);
  expect(JSON.parse(vendor().requests[0]?.body ?? "")).toMatchObject({
    model: "text-embedding-3-small",
  });
});

describe("money", () => {
  it("is the price of what was read (R-MON-8)", async () => {
    const id = newRequestId();
    const { accountId } = fixture.customer;
    // The call of another test may still be settling.
    await expect.poll(async () => (await fixture.gateway.money(accountId)).held).toBe(0n);
    const before = await fixture.gateway.money(accountId);
    await embed(ask, { "x-request-id": id });
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({
      model: "embed",
      vendor: "embedder",
      path: "/v1/embeddings",
      status: 200,
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.UPSTREAM,
    });
    expect(call.usage).toMatchObject({ inputTokens: 12, outputTokens: 0 });
    // 0.25 USD for a million tokens.
    expect(call.cost?.amountNanos).toBe(3_000n);
    const after = await fixture.gateway.money(accountId);
    expect(before.balance - after.balance).toBe(3_000n);
    expect(after.held).toBe(0n);
  });

  it.each([
    ["nothing", {}],
    ["nonsense", { usage: { prompt_tokens: -1 } }],
    ["null", { usage: null }],
  ])("is estimated where the vendor reports %s", async (_name, change) => {
    vendor().answer = () => ({ body: JSON.stringify({ ...reply, usage: undefined, ...change }) });
    const id = newRequestId();
    await embed(ask, { "x-request-id": id });
    const call = await fixture.gateway.call(id);
    expect(call.usageSource).toBe(UsageSource.ESTIMATED);
    expect(call.usage?.inputTokens).toBe(Math.ceil(JSON.stringify(ask).length / 4));
    expect(call.usage?.outputTokens).toBe(0);
  });

  it("402 where there is none", async () => {
    const { key } = await fixture.gateway.customer({ balanceNanos: 1n });
    const refused = await embed(ask, { authorization: `Bearer ${key}` });
    expect(refused.status).toBe(402);
    expect(refused.headers["x-should-retry"]).toBe("false");
    expect(vendor().requests).toHaveLength(0);
  });
});

describe("refused, free of charge", () => {
  const body = JSON.stringify(ask);
  it.each([
    { status: 400, name: "no JSON", body: "{" },
    { status: 400, name: "no input", body: '{"model":"embed"}', param: "input" },
    { status: 400, name: "an empty text", body: '{"model":"embed","input":""}', param: "input" },
    { status: 400, name: "an empty list", body: '{"model":"embed","input":[ ]}', param: "input" },
    { status: 400, name: "no model", body: '{"input":"x"}', param: "model" },
    { status: 400, name: "model twice", body: '{"model":"embed","model":"x","input":"x"}' },
    { status: 400, name: "a vendor without", body: body.replace('"embed"', '"text-only"') },
    {
      status: 400,
      name: "a model of images",
      body: body.replace('"embed"', '"painter"'),
      param: "model",
    },
    { status: 404, name: "no such model", body: body.replace('"embed"', '"none"') },
    { status: 401, name: "no key", headers: { authorization: "" } },
    { status: 415, name: "no JSON type", headers: { "content-type": "text/plain" } },
    { status: 405, name: "GET", method: "GET" },
  ])("embeddings with $name are refused with $status, free of charge", async (refusal) => {
    await expectRefused(fixture, "/v1/embeddings", { body: ask, ...refusal });
    expect(vendor().requests).toHaveLength(0);
  });

  it("a vendor's 400 to an embeddings call passes in its own words (R-ERR-4)", async () => {
    const words = '{"error":{"message":"too long","type":"invalid_request_error"';
    vendor().answer = () => ({ status: 400, body: `${words}}}` });
    const id = newRequestId();
    const got = await expectFree(fixture.gateway, fixture.customer, () =>
      embed(ask, { "x-request-id": id }),
    );
    expect([got.status, got.body.toString()]).toEqual([400, `${words},"code":"invalid_request"}}`]);
    expect((await fixture.gateway.call(id)).ending).toBe(CallEnding.UPSTREAM_REFUSED);
  });

  it.each([
    ["a reply that is no JSON", { body: "<html>" }, 502],
    ["a cut reply", { body: '{"data":[' }, 502],
    [
      "an event stream",
      { body: "data: {}\n\n", headers: { "content-type": "text/event-stream" } },
      502,
    ],
    ["its own failure", { status: 500, body: "{}" }, 502],
    ["too many requests", { status: 429, body: "{}", headers: { "retry-after": "7" } }, 429],
    ["our key refused", { status: 401, body: "{}" }, 503],
  ])("%s of the embeddings vendor costs nothing", async (_name, answer, status) => {
    vendor().answer = () => answer;
    const got = await expectFree(fixture.gateway, fixture.customer, () => embed(ask));
    expect(got.status).toBe(status);
    if (status === 429) expect(got.headers["retry-after"]).toBe("7");
  });
});

test("a model of embeddings generates no text, and the refusal says what it is for", async () => {
  const messages = [{ role: "user", content: "Hi" }];
  const got = await expectFree(fixture.gateway, fixture.customer, () =>
    fixture.send("/v1/chat/completions", {
      body: JSON.stringify({ model: "openai-embed", messages }),
      headers: { "x-request-id": "refused" },
    }),
  );
  expect(got.status).toBe(400);
  expect(errorOf(got).message).toContain("send texts to POST /v1/embeddings");
});

test("a repetition with the same Idempotency-Key gets the same embeddings, and is charged once", async () => {
  const headers = { "idempotency-key": newRequestId() };
  const request = { headers, body: JSON.stringify({ model: "embed", input: "Hi" }) };
  const first = await fixture.send("/v1/embeddings", request);
  await expectFree(fixture.gateway, fixture.customer, async () => {
    const second = await fixture.send("/v1/embeddings", request);
    expect([second.status, second.body]).toEqual([200, first.body]);
  });
  expect(vendor().requests).toHaveLength(1);
});
