/**
 * Requests whose highest cost exceeds what an account can hold at all (2⁶³ − 1 nano-USD): 400,
 * never 500 (R-ERR-7).
 */
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { amountNanosMax } from "../../../src/core/money.ts";
import { priceDefault } from "../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { newRequestId, useGateway } from "../harness.ts";

const maxOutputTokens = 1_000_000_000;

/** A thousand times as much for the longest reply as an account can hold. */
const price = { ...priceDefault, output: amountNanosMax };

const running: { vendor?: PlainVendor } = {};
beforeAll(async () => {
  const usage = { prompt_tokens: 2 ** 31 - 1, total_tokens: 2 ** 31 - 1 };
  const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
  const body = JSON.stringify({ object: "list", model: "vectors", data, usage });
  running.vendor = await startPlainVendor(() => ({ body }));
});
afterAll(() => running.vendor?.close());

const fixture = useGateway(({ baseUrl, secret, origin }) => ({
  vendors: {
    sim: { baseUrl, apiKey: secret },
    vectors: { baseUrl: `${running.vendor?.url}/v1`, apiKey: secret },
    gemini: { kind: "gemini", baseUrl: origin, apiKey: secret, nativePrefix: "/gemini" },
    demo: { kind: "demo", baseUrl: "" },
  },
  models: {
    text: { maxOutputTokens, price },
    native: { maxOutputTokens, price, routes: [{ vendor: "gemini", model: "native" }] },
    vectors: {
      type: ModelType.EMBEDDING,
      routes: [{ vendor: "vectors", model: "vectors" }],
      maxOutputTokens: 0,
      price: { ...priceDefault, input: 9_223_372_036_000_000_000n, output: undefined },
    },
    picture: {
      type: ModelType.IMAGE,
      routes: [{ vendor: "demo", model: "image" }],
      maxOutputTokens: 0,
      price: { ...priceDefault, input: undefined, output: undefined, image: amountNanosMax },
    },
  },
}));

const messages = [{ role: "user", content: "Hi" }];
const max_tokens = maxOutputTokens;
const contents = [{ role: "user", parts: [{ text: "Hi" }] }];
const generationConfig = { maxOutputTokens };

const requests: readonly (readonly [name: string, path: string, body: object])[] = [
  ["chat", "/v1/chat/completions", { model: "text", messages, max_tokens }],
  ["several choices", "/v1/chat/completions", { model: "text", messages, max_tokens, n: 128 }],
  ["a stream", "/v1/chat/completions", { model: "text", messages, max_tokens, stream: true }],
  ["completions", "/v1/completions", { model: "text", prompt: "Hi", max_tokens }],
  ["messages", "/v1/messages", { model: "text", messages, max_tokens }],
  ["responses", "/v1/responses", { model: "text", input: "Hi", max_output_tokens: max_tokens }],
  [
    "a background response",
    "/v1/responses",
    { model: "text", input: "Hi", max_output_tokens: max_tokens, background: true, store: true },
  ],
  ["a native call", "/gemini/v1beta/models/native:generateContent", { contents, generationConfig }],
  ["a text task", "/api/ai/tasks", { modelKey: "text", textParams: { prompt: "Hi", max_tokens } }],
  ["an image task", "/api/ai/tasks", { modelKey: "picture", imageParams: { prompt: "Hi", n: 4 } }],
  ["images", "/v1/images/generations", { model: "picture", prompt: "Hi", n: 4 }],
];

describe("a request that could cost more than any account can hold", () => {
  it.each(requests)("is refused with 400: %s", async (_name, path, body) => {
    const { status, body: text } = await fixture.send(path, { body: JSON.stringify(body) });
    expect({ status, text: text.toString() }).toEqual({
      status: 400,
      text: expect.stringContaining("9.2 billion USD") as string,
    });
    expect((await fixture.gateway.money(fixture.customer.accountId)).held).toBe(0n);
  });

  it("is refused as an invalid argument over gRPC", async () => {
    const client = createClient(
      InferenceService,
      createGrpcTransport({ baseUrl: fixture.gateway.internalUrl }),
    );
    const said = { kind: { case: "text" as const, value: { text: "Hi" } } };
    const conversation = { turns: [{ role: Role.USER, parts: [said] }] };
    const call = client.generate(
      { generation: { model: "text", conversation, maxOutputTokens } },
      { headers: { authorization: `Bearer ${fixture.customer.key}` } },
    );
    await expect(call).rejects.toMatchObject({
      code: Code.InvalidArgument,
      message: expect.stringContaining("9.2 billion USD") as string,
    });
  });
});

it("a reply whose vendor reports more than any account can pay charges what the request can be (R-MON-15)", async () => {
  const { gateway } = fixture;
  const rich = await gateway.customer({ balanceNanos: 10n ** 15n });
  const requestId = newRequestId();
  const reply = await fixture.send("/v1/embeddings", {
    headers: { authorization: `Bearer ${rich.key}`, "x-request-id": requestId },
    body: JSON.stringify({ model: "vectors", input: "Hi" }),
  });
  expect(reply.status).toBe(200);
  const { cost } = await gateway.call(requestId);
  expect(cost?.amountNanos ?? 0n).toBeLessThan(10n ** 15n);
  const { balance, held } = await gateway.money(rich.accountId);
  expect(held).toBe(0n);
  expect(10n ** 15n - balance).toBe(cost?.amountNanos);
  expect(balance).toBeGreaterThanOrEqual(0n);
});
