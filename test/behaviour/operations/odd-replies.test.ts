/**
 * Replies of vendors to operations that are errors with a status of success, or that have
 * impossible figures.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { priceDefault } from "../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { newRequestId, useGateway } from "../harness.ts";

const state: { vendor?: PlainVendor; body: string; isStream: boolean } = {
  body: "",
  isStream: false,
};

beforeAll(async () => {
  state.vendor = await startPlainVendor(() => ({
    headers: { "content-type": state.isStream ? "text/event-stream" : "application/json" },
    body: state.body,
  }));
});
afterAll(() => state.vendor?.close());

const routes = [{ vendor: "sim", model: "vendor-model" }];
const fixture = useGateway(() => ({
  vendors: { sim: { baseUrl: `${state.vendor?.url ?? ""}/v1`, apiKey: "sk-odd" } },
  models: {
    embeddings: { type: ModelType.EMBEDDING, routes },
    rerank: { type: ModelType.RERANK, routes, price: { ...priceDefault, search: 1_000_000n } },
    completions: { routes },
  },
}));

type Operation = "embeddings" | "completions" | "rerank";

const bodies: Record<Operation, object> = {
  embeddings: { input: ["Hi", "Ho"] },
  completions: { prompt: "Hi", max_tokens: 9 },
  rerank: { query: "Hi", documents: ["a", "b"] },
};

async function ask(operation: Operation, body: string, stream = false) {
  Object.assign(state, { body, isStream: stream });
  const id = newRequestId();
  const reply = await fixture.send(`/v1/${operation}`, {
    headers: { "x-request-id": id },
    body: JSON.stringify({ ...bodies[operation], model: operation, ...(stream && { stream }) }),
  });
  const { cost, usage } = await fixture.gateway.call(id);
  const nanos = cost?.amountNanos ?? 0n;
  return { status: reply.status, text: reply.body.toString(), nanos, usage };
}

it.each([
  ["embeddings", '{"error":{"message":"it broke"}}'],
  ["embeddings", '{"object":"error","message":"it broke"}'],
  ["embeddings", "{}"],
  ["embeddings", '{"data":[],"usage":{"prompt_tokens":4,"total_tokens":4}}'],
  ["completions", '{"error":{"message":"it broke"}}'],
  ["completions", '{"object":"error","message":"it broke"}'],
  ["completions", "{}"],
  ["completions", '{"choices":[]}'],
  ["rerank", '{"error":"it broke"}'],
  ["rerank", "{}"],
] as const)(
  "the reply of %s without a result is an error, and free: %s",
  async (operation, body) => {
    const { status, nanos } = await ask(operation, body);
    expect([status, nanos]).toEqual([502, 0n]);
  },
);

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

it.each([
  ["data: [DONE]\n\n"],
  [event({ error: { message: "it broke" } })],
  [event({ object: "error", message: "it broke" })],
])("a stream of completions that fails before its text is free: %s", async (stream) => {
  const { text, nanos } = await ask("completions", stream, true);
  expect(text).toMatch(/"message":"\w/);
  expect(text).not.toContain("[DONE]");
  expect(nanos).toBe(0n);
});

it("usage of completions only grows: a later 0 replaces nothing", async () => {
  const usage = (count: number) => ({ prompt_tokens: count, completion_tokens: count });
  const chunk = { id: "c", object: "text_completion", created: 1, model: "m" };
  const stream = [
    event({ ...chunk, choices: [{ index: 0, text: "Hello", finish_reason: "stop" }] }),
    event({ ...chunk, choices: [], usage: usage(8) }),
    event({ ...chunk, choices: [], usage: usage(0) }),
    "data: [DONE]\n\n",
  ];
  const { nanos, usage: read } = await ask("completions", stream.join(""), true);
  expect(read).toMatchObject({ inputTokens: 8, outputTokens: 8 });
  expect(nanos).toBe(18_000n);
});

it("searches beyond twice those of the request are not charged (R-MON-15)", async () => {
  const results = [{ index: 0, relevance_score: 1 }];
  const meta = { billed_units: { search_units: 1_000_000_000 } };
  const { status, nanos } = await ask("rerank", JSON.stringify({ results, meta }));
  expect(status).toBe(200);
  // Two searches, and the estimated input.
  expect(nanos).toBeGreaterThanOrEqual(2_000_000n);
  expect(nanos).toBeLessThan(2_100_000n);
});
