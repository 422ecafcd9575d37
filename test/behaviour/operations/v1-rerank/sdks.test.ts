/**
 * Rerank with the SDKs that customers use: Cohere's own, in both versions of its API, the AI SDK
 * and LangChain.
 */
import { createCohere } from "@ai-sdk/cohere";
import { CohereRerank } from "@langchain/cohere";
import { Document } from "@langchain/core/documents";
import { rerank } from "ai";
import { CohereClient, CohereClientV2, CohereError } from "cohere-ai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { always, priceDefault } from "../../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { expectFree, useGateway } from "../../harness.ts";

const cohereReply = {
  id: "07734bd2",
  results: [
    { index: 1, relevance_score: 0.98 },
    { index: 0, relevance_score: 0.25 },
  ],
  meta: { api_version: { version: "2" }, billed_units: { search_units: 1 } },
};
const dashscopeReply = {
  request_id: "r1",
  output: { results: cohereReply.results },
  usage: { total_tokens: 40 },
};

const running: { vendor?: PlainVendor } = {};
beforeAll(async () => {
  running.vendor = await startPlainVendor(({ url }) => ({
    body: JSON.stringify(url.includes("text-rerank") ? dashscopeReply : cohereReply),
  }));
});
afterAll(() => running.vendor?.close());

const noPrice = { ...priceDefault, input: undefined, output: undefined };
const fixture = useGateway(() => {
  const url = running.vendor?.url ?? "";
  const apiKey = "sk-rerank-vendor";
  return {
    vendors: {
      cohere: { baseUrl: url, apiKey, kind: "cohere" },
      dashscope: { baseUrl: url, apiKey, kind: "dashscope" },
    },
    models: {
      cohere: {
        type: ModelType.RERANK,
        routes: [{ vendor: "cohere", model: "rerank-v3.5" }],
        prices: always({ ...noPrice, search: 2_000_000n }),
      },
      gte: {
        type: ModelType.RERANK,
        routes: [{ vendor: "dashscope", model: "gte-rerank-v2" }],
        prices: always({ ...noPrice, input: 1_000_000_000n }),
      },
    },
  };
});

const query = "Which is a fruit?";
const documents = ["stone", "apple"];
const ranked = [
  { index: 1, relevanceScore: 0.98 },
  { index: 0, relevanceScore: 0.25 },
];

const clientOf = (Client: typeof CohereClientV2 | typeof CohereClient, token: string) =>
  new Client({ token, environment: fixture.gateway.url, maxRetries: 0 });

it.each(["cohere", "gte"])("Cohere's SDK ranks with its second API: %s", async (model) => {
  const client = clientOf(CohereClientV2, fixture.customer.key);
  const { results } = await client.rerank({ model, query, documents, topN: 2 });
  expect(results).toMatchObject(ranked);
});

it.each(["cohere", "gte"])("Cohere's SDK ranks with its first API: %s", async (model) => {
  const client = clientOf(CohereClient, fixture.customer.key);
  const { results } = await client.rerank({ model, query, documents, topN: 2 });
  expect(results).toMatchObject(ranked);
});

it("Cohere's SDK raises its errors, with the status and the message", async () => {
  const unknown = clientOf(CohereClientV2, fixture.customer.key).rerank({
    ...{ model: "none", query, documents },
  });
  await expect(unknown).rejects.toBeInstanceOf(CohereError);
  await expect(unknown).rejects.toMatchObject({ statusCode: 404 });
  const stranger = clientOf(CohereClientV2, "uas_none").rerank({
    model: "cohere",
    query,
    documents,
  });
  await expect(stranger).rejects.toMatchObject({ statusCode: 401 });
});

it.each(["cohere", "gte"])("the AI SDK ranks documents: %s", async (model) => {
  const provider = createCohere({
    apiKey: fixture.customer.key,
    baseURL: `${fixture.gateway.url}/v2`,
  });
  const { ranking, rerankedDocuments } = await rerank({
    ...{ model: provider.reranking(model), query, documents, topN: 2, maxRetries: 0 },
  });
  expect(ranking).toMatchObject([
    { originalIndex: 1, score: 0.98, document: "apple" },
    { originalIndex: 0, score: 0.25, document: "stone" },
  ]);
  expect(rerankedDocuments).toEqual(["apple", "stone"]);
});

it("the AI SDK's requests that are refused cost nothing", async () => {
  const provider = createCohere({
    apiKey: fixture.customer.key,
    baseURL: `${fixture.gateway.url}/v2`,
  });
  const refused = expectFree(fixture.gateway, fixture.customer, () =>
    expect(
      rerank({ model: provider.reranking("none"), query, documents, maxRetries: 0 }),
    ).rejects.toMatchObject({ statusCode: 404 }),
  );
  await refused;
});

const langChain = (model: string) => {
  const { key: token } = fixture.customer;
  const client = new CohereClient({ token, environment: fixture.gateway.url, maxRetries: 0 });
  return new CohereRerank({ model, topN: 2, client });
};

it.each(["cohere", "gte"])(
  "LangChain compresses documents to the relevant ones: %s",
  async (model) => {
    const pages = documents.map((pageContent) => new Document({ pageContent }));
    const relevant = await langChain(model).compressDocuments(pages, query);
    expect(relevant).toMatchObject([
      { pageContent: "apple", metadata: { relevanceScore: 0.98 } },
      { pageContent: "stone", metadata: { relevanceScore: 0.25 } },
    ]);
  },
);

it("LangChain's requests that are refused cost nothing", async () => {
  const refused = expectFree(fixture.gateway, fixture.customer, () =>
    expect(langChain("none").rerank(documents, query)).rejects.toMatchObject({ statusCode: 404 }),
  );
  await refused;
});
