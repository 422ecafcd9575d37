/**
 * POST /v1/rerank and /v2/rerank: passed on as they are, or in the form of their vendor; charged by
 * search or token.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { always, priceDefault } from "../../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { errorOf, expectFree, json, newRequestId, useGateway } from "../../harness.ts";

const running: { vendor?: PlainVendor } = {};
const cohereReply = {
  id: "07734bd2",
  results: [{ index: 1, relevance_score: 0.98 }],
  meta: { api_version: { version: "2" }, billed_units: { search_units: 2 } },
};
const jinaReply = {
  model: "vendor-rerank",
  usage: { total_tokens: 40 },
  results: [{ index: 1, relevance_score: 0.98, document: { text: "b" } }],
};
beforeAll(async () => {
  running.vendor = await startPlainVendor(() => ({ body: JSON.stringify(cohereReply) }));
});
beforeEach(() => {
  vendor().requests.length = 0;
  vendor().answer = () => ({ body: JSON.stringify(cohereReply) });
});
afterAll(() => running.vendor?.close());

function vendor(): PlainVendor {
  if (running.vendor === undefined) throw new Error("not started");
  return running.vendor;
}

const noPrice = { ...priceDefault, input: undefined, output: undefined };
const perSearch = always({ ...noPrice, search: 2_000_000n });
const perToken = always({ ...noPrice, input: 1_000_000_000n });
const fixture = useGateway(() => {
  const { url } = vendor();
  const apiKey = "sk-rerank-vendor";
  const model = (name: string, prices: typeof perSearch, vendorModel = "vendor-rerank") => ({
    type: ModelType.RERANK,
    routes: [{ vendor: name, model: vendorModel }],
    prices,
  });
  return {
    vendors: {
      cohere: { baseUrl: url, apiKey, kind: "cohere" },
      jina: { baseUrl: `${url}/v1`, apiKey, kind: "jina" },
      vllm: { baseUrl: `${url}/v1`, apiKey, kind: "openai-compatible" },
      tei: { baseUrl: url, apiKey, kind: "openai-compatible", rerankForm: "texts" },
      dashscope: { baseUrl: url, apiKey, kind: "dashscope" },
    },
    models: {
      cohere: model("cohere", perSearch),
      jina: model("jina", perToken),
      vllm: model("vllm", perToken),
      tei: model("tei", perToken),
      gte: model("dashscope", perToken, "gte-rerank-v2"),
      qwen: model("dashscope", perToken, "qwen3-rerank"),
      chat: { routes: [{ vendor: "vllm", model: "chat" }] },
    },
  };
});

const ask = { model: "cohere", query: "capital?", documents: ["a", "b"], top_n: 1 };

function rank(body: unknown, path = "/v2/rerank", id = newRequestId()) {
  return fixture.send(path, { body: JSON.stringify(body), headers: { "x-request-id": id } });
}

describe("requests and replies", () => {
  it.each(["/v1/rerank", "/v2/rerank"])(
    "pass %s of Cohere unchanged but for the model",
    async (path) => {
      const body = ' {"query":"q" ,"documents":["\\u00e9",  "b"],"model":"cohere","x":1.50} ';
      const answered = ' {"results" : [{"index":0,"relevance_score":1e-1}],"more":1.50 }';
      vendor().answer = () => ({ body: answered });
      const got = await fixture.send(path, { body });
      expect([got.status, got.body.toString()]).toEqual([200, answered]);
      const [request] = vendor().requests;
      expect(request?.url).toBe(path);
      expect(request?.body).toBe(body.replace('"cohere"', '"vendor-rerank"'));
      expect(request?.headers.authorization).toBe("Bearer sk-rerank-vendor");
    },
  );

  it.each(["jina", "vllm"])("rerank replies of %s show the public model name", async (model) => {
    vendor().answer = () => ({ body: JSON.stringify(jinaReply) });
    const got = await rank({ ...ask, model, return_documents: true }, "/v1/rerank");
    expect(json(got)).toEqual({ ...jinaReply, model });
    expect(vendor().requests[0]?.url).toBe("/v1/rerank");
  });

  it.each(["jina", "vllm"])(
    "replies of %s have the meta that clients of Cohere's second API require, and keep every other byte",
    async (model) => {
      const answered = ` { "usage": {"total_tokens":40}, "results" : [{"index":1,"relevance_score":9.80e-1}] } \n`;
      vendor().answer = () => ({ body: answered });
      const got = await rank({ ...ask, model });
      const meta = '"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":40}}';
      expect(got.body.toString()).toBe(answered.replace("] }", `] ,${meta}}`));
      expect((await rank({ ...ask, model }, "/v1/rerank")).body.toString()).toBe(answered);
    },
  );

  it("reach Text Embeddings Inference in its form", async () => {
    const scores = [
      { index: 0, score: 0.1 },
      { index: 1, score: 0.9 },
    ];
    vendor().answer = () => ({ body: JSON.stringify(scores) });
    const body = { ...ask, model: "tei", documents: ["a", { text: "b" }], return_documents: true };
    const got = await rank(body, "/v1/rerank");
    expect(json(got)).toEqual({
      model: "tei",
      results: [{ index: 1, relevance_score: 0.9, document: { text: "b" } }],
    });
    const [request] = vendor().requests;
    expect(request?.url).toBe("/rerank");
    expect(JSON.parse(request?.body ?? "")).toEqual({
      query: "capital?",
      texts: ["a", "b"],
      truncate: true,
    });
  });

  it("reach DashScope in its form", async () => {
    const output = { results: [{ index: 1, relevance_score: 0.9, document: { text: "b" } }] };
    const answered = { output, usage: { total_tokens: 79 }, request_id: "r-1" };
    vendor().answer = () => ({ body: JSON.stringify(answered) });
    const id = newRequestId();
    const got = await rank({ ...ask, model: "gte" }, "/v2/rerank", id);
    const meta = { api_version: { version: "2" }, billed_units: { input_tokens: 79 } };
    const usage = { total_tokens: 79 };
    expect(json(got)).toEqual({ id: "r-1", model: "gte", ...output, usage, meta });
    const [request] = vendor().requests;
    expect(request?.url).toBe("/api/v1/services/rerank/text-rerank/text-rerank");
    expect(JSON.parse(request?.body ?? "")).toEqual({
      model: "gte-rerank-v2",
      input: { query: "capital?", documents: ["a", "b"] },
      parameters: { top_n: 1, return_documents: false },
    });
    expect((await fixture.gateway.call(id)).usage?.inputTokens).toBe(79);
  });

  it("reach DashScope's newer models at their own address", async () => {
    vendor().answer = () => ({ body: JSON.stringify({ ...jinaReply, object: "list" }) });
    const got = await rank({ ...ask, model: "qwen", instruct: "as a librarian" });
    const meta = { api_version: { version: "2" }, billed_units: { input_tokens: 40 } };
    expect(json(got)).toEqual({ ...jinaReply, object: "list", model: "qwen", meta });
    const [request] = vendor().requests;
    expect(request?.url).toBe("/compatible-api/v1/reranks");
    expect(JSON.parse(request?.body ?? "")).toEqual({
      model: "qwen3-rerank",
      query: "capital?",
      documents: ["a", "b"],
      top_n: 1,
      instruct: "as a librarian",
    });
  });
});

describe("money", () => {
  it("is charged by the searches that the vendor counts", async () => {
    const id = newRequestId();
    await rank(ask, "/v2/rerank", id);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({
      path: "/v2/rerank",
      vendor: "cohere",
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.UPSTREAM,
    });
    expect(call.cost?.amountNanos).toBe(4_000_000n);
  });

  it("is charged one search for each 100 documents where the vendor counts none", async () => {
    vendor().answer = () => ({ body: JSON.stringify({ results: [] }) });
    const id = newRequestId();
    await rank({ ...ask, documents: Array(101).fill("x") }, "/v2/rerank", id);
    const call = await fixture.gateway.call(id);
    expect(call.usageSource).toBe(UsageSource.ESTIMATED);
    expect(call.cost?.amountNanos).toBe(4_000_000n);
  });

  it("is charged by the tokens that the vendor reports", async () => {
    vendor().answer = () => ({ body: JSON.stringify(jinaReply) });
    const id = newRequestId();
    await rank({ ...ask, model: "jina" }, "/v1/rerank", id);
    const call = await fixture.gateway.call(id);
    expect(call.usage).toMatchObject({ inputTokens: 40, outputTokens: 0 });
    expect(call.cost?.amountNanos).toBe(40_000n);
  });

  it("holds the query anew for each document, so that a vendor that counts it so is paid", async () => {
    const query = "q".repeat(4_000);
    const documents = Array(50).fill("d");
    vendor().answer = () => ({
      body: JSON.stringify({ ...jinaReply, usage: { total_tokens: 50 * 1_001 } }),
    });
    const id = newRequestId();
    await rank({ ...ask, model: "jina", query, documents }, "/v1/rerank", id);
    const call = await fixture.gateway.call(id);
    expect(call.cost?.amountNanos).toBe(50_050_000n);
    expect(call.held?.amountNanos).toBeGreaterThanOrEqual(50_050_000n);
  });

  it("402 where there is none, in a body that Cohere's SDKs read", async () => {
    const { key } = await fixture.gateway.customer({ balanceNanos: 1n });
    const headers = { authorization: `Bearer ${key}` };
    const refused = await fixture.send("/v2/rerank", { body: JSON.stringify(ask), headers });
    expect(refused.status).toBe(402);
    expect(json(refused)["message"]).toBe(errorOf(refused)["message"]);
    expect(vendor().requests).toHaveLength(0);
  });
});

describe("refused, free of charge", () => {
  it.each([
    ["no JSON", "{", undefined, 400],
    ["no model", { ...ask, model: undefined }, "model", 400],
    ["an unknown model", { ...ask, model: "none" }, "model", 404],
    ["a model of text", { ...ask, model: "chat" }, "model", 400],
    ["no query", { ...ask, query: undefined }, "query", 400],
    ["a query that is no text", { ...ask, query: 5 }, "query", 400],
    ["an empty query", { ...ask, query: " " }, "query", 400],
    ["no documents", { ...ask, documents: undefined }, "documents", 400],
    ["an empty list", { ...ask, documents: [] }, "documents", 400],
    ["documents that are no list", { ...ask, documents: "a" }, "documents", 400],
    ["a document that is no text", { ...ask, documents: ["a", 5] }, "documents[1]", 400],
    [
      "an object in the second version",
      { ...ask, documents: [{ text: "a" }] },
      "documents[0]",
      400,
    ],
    ["no whole number of results", { ...ask, top_n: 1.5 }, "top_n", 400],
    [
      "a document of DashScope without text",
      { ...ask, model: "gte", documents: [{}] },
      "documents[0]",
      400,
    ],
  ])("a rerank request with %s is refused, free of charge", async (_name, body, param, status) => {
    const sent = typeof body === "string" ? body : JSON.stringify(body);
    const path =
      param === "documents[0]" && body instanceof Object && body.model === "gte"
        ? "/v1/rerank"
        : "/v2/rerank";
    const got = await expectFree(fixture.gateway, fixture.customer, () =>
      fixture.send(path, { body: sent, headers: { "x-request-id": "refused" } }),
    );
    expect(got.status).toBe(status);
    expect(errorOf(got)).toMatchObject({ message: expect.any(String), ...(param && { param }) });
    expect(json(got)["message"]).toBe(errorOf(got)["message"]);
    expect(vendor().requests).toHaveLength(0);
  });

  it.each([
    ["Cohere's", "cohere", '{"id":"x","message":"too many documents"}', true],
    ["Jina's", "jina", '{"detail":"too many documents"}', false],
    [
      "vLLM's",
      "vllm",
      '{"error":{"message":"too many documents","type":"BadRequestError","code":400}}',
      false,
    ],
  ])("%s refusal of a rerank keeps its words", async (_name, model, told, isOwn) => {
    vendor().answer = () => ({ status: 400, body: told });
    const got = await expectFree(fixture.gateway, fixture.customer, () => rank({ ...ask, model }));
    expect(got.status).toBe(400);
    if (isOwn) expect(got.body.toString()).toBe(told);
    expect(json(got)["message"]).toBe("too many documents");
  });

  it.each([
    ["a reply without results", "{}"],
    ["a reply that is no JSON", "<html>"],
    ["a cut reply", '{"results":['],
  ])("%s of the rerank vendor is a 502, free of charge", async (_name, body) => {
    vendor().answer = () => ({ body });
    const got = await expectFree(fixture.gateway, fixture.customer, () => rank(ask));
    expect(got.status).toBe(502);
  });
});
