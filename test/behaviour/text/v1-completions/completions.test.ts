/**
 * POST /v1/completions: legacy completions, whole and streamed, passed on as they are and charged
 * by token.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { dataOf, errorOf, expectFree, newRequestId, useGateway } from "../../harness.ts";

const running: { vendor?: PlainVendor } = {};
const head = { id: "cmpl-1", object: "text_completion", created: 1, model: "vendor-instruct" };
const choice = { text: " world", index: 0, logprobs: null, finish_reason: "stop" };
const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
const whole = { ...head, choices: [choice], usage };
const chunks = [
  { ...head, choices: [{ ...choice, text: " wor", finish_reason: null }] },
  { ...head, choices: [{ ...choice, text: "ld" }] },
  { ...head, choices: [], usage },
];
const eventStream = { "content-type": "text/event-stream" };

function streamed(events: readonly unknown[], end = "data: [DONE]\n\n") {
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("") + end;
  return { body, headers: eventStream };
}

beforeAll(async () => {
  running.vendor = await startPlainVendor(() => ({ body: JSON.stringify(whole) }));
});
beforeEach(() => {
  vendor().requests.length = 0;
  vendor().answer = ({ body }) =>
    body.includes('"stream":true') ? streamed(chunks) : { body: JSON.stringify(whole) };
});
afterAll(() => running.vendor?.close());

function vendor(): PlainVendor {
  if (running.vendor === undefined) throw new Error("not started");
  return running.vendor;
}

const fixture = useGateway(() => ({
  vendors: {
    vllm: { baseUrl: `${vendor().url}/v1`, apiKey: "k", kind: "openai-compatible" },
    claude: { baseUrl: vendor().url, apiKey: "k", kind: "anthropic" },
  },
  models: {
    instruct: { routes: [{ vendor: "vllm", model: "vendor-instruct" }] },
    claude: { routes: [{ vendor: "claude", model: "x" }] },
    embedder: { type: ModelType.EMBEDDING, routes: [{ vendor: "vllm", model: "e" }] },
  },
}));
const ask = { model: "instruct", prompt: "Hello", max_tokens: 16 };

it("the official SDK gets a completion, charged as the vendor counts", async () => {
  const id = newRequestId();
  const got = await fixture.openai.completions.create(ask, { headers: { "x-request-id": id } });
  expect(got).toMatchObject({ ...whole, model: "instruct" });
  expect(vendor().requests[0]).toMatchObject({ url: "/v1/completions" });
  expect(JSON.parse(vendor().requests[0]?.body ?? "")).toEqual({
    ...ask,
    model: "vendor-instruct",
  });
  const call = await fixture.gateway.call(id);
  expect(call).toMatchObject({ path: "/v1/completions", usageSource: UsageSource.UPSTREAM });
  expect(call.usage).toMatchObject({ inputTokens: 5, outputTokens: 7 });
});

it("streams to the official SDK, and hides the usage that only billing asked for", async () => {
  const id = newRequestId();
  const stream = await fixture.openai.completions.create(
    { ...ask, stream: true },
    { headers: { "x-request-id": id } },
  );
  let text = "";
  for await (const chunk of stream) {
    expect(chunk).toMatchObject({ model: "instruct", choices: [{}] });
    text += chunk.choices[0]?.text;
  }
  expect(text).toBe(" world");
  expect(JSON.parse(vendor().requests[0]?.body ?? "")).toMatchObject({
    stream_options: { include_usage: true },
  });
  const call = await fixture.gateway.call(id);
  expect(call).toMatchObject({ ending: CallEnding.COMPLETED, usageSource: UsageSource.UPSTREAM });
  expect(call.usage).toMatchObject({ inputTokens: 5, outputTokens: 7 });
});

it("a client that asked for the usage gets it", async () => {
  const body = { ...ask, stream: true, stream_options: { include_usage: true } };
  const got = await fixture.send("/v1/completions", { body: JSON.stringify(body) });
  const events = dataOf(got.body);
  expect(events.at(-1)).toBe("[DONE]");
  expect(JSON.parse(events.at(-2) ?? "")).toEqual({ ...chunks[2], model: "instruct" });
});

it("a completion holds money for every choice that the vendor makes: each of best_of, for each prompt", async () => {
  const [one, six] = [newRequestId(), newRequestId()];
  const send = (body: unknown, id: string) =>
    fixture.send("/v1/completions", {
      body: JSON.stringify(body),
      headers: { "x-request-id": id },
    });
  await send({ ...ask, max_tokens: 1_000 }, one);
  await send({ ...ask, max_tokens: 1_000, prompt: ["a", "b"], best_of: 3 }, six);
  const [small, large] = [await fixture.gateway.call(one), await fixture.gateway.call(six)];
  const held = Number(large.held?.amountNanos) / Number(small.held?.amountNanos);
  expect(held).toBeGreaterThan(5);
  expect(held).toBeLessThan(7);
});

describe("a prompt that is repeated because of echo", () => {
  const echoing = { ...ask, prompt: ["Hello", "Goodbye"], n: 2, echo: true };
  const texts = ["Hello", "Hel", "Goodbye", "Goodbye"];
  const pieces = [" one", "lo two", " three", ""];
  const choices = (of: readonly string[], finish_reason: string | null) =>
    of.map((text, index) => ({ ...choice, text, index, finish_reason }));

  it.each([true, false])(
    "is no output where the vendor counts nothing, streamed: %s",
    async (stream) => {
      vendor().answer = () =>
        stream
          ? streamed([
              { ...head, choices: choices(texts, null) },
              { ...head, choices: choices(pieces, "stop") },
            ])
          : {
              body: JSON.stringify({
                ...head,
                choices: choices(
                  texts.map((text, at) => `${text}${pieces[at]}`),
                  "stop",
                ),
              }),
            };
      const id = newRequestId();
      const body = JSON.stringify({ ...echoing, stream });
      const got = await fixture.send("/v1/completions", { body, headers: { "x-request-id": id } });
      expect(got.status).toBe(200);
      const call = await fixture.gateway.call(id);
      expect(call.usageSource).toBe(UsageSource.ESTIMATED);
      // " one", " two" and " three": 14 bytes.
      expect(call.usage?.outputTokens).toBe(4);
    },
  );
});

describe("streams that fail", () => {
  it.each([
    ["an error event", streamed([chunks[0], { error: { message: "boom" } }], "")],
    ["an end before the last text", streamed(chunks.slice(0, 1), "")],
  ])("streams that fail after %s do not look complete", async (_name, answer) => {
    vendor().answer = () => answer;
    const id = newRequestId();
    const body = JSON.stringify({ ...ask, stream: true });
    const got = await fixture.send("/v1/completions", { body, headers: { "x-request-id": id } });
    expect(dataOf(got.body)).not.toContain("[DONE]");
    expect(got.body.toString()).toContain('"error"');
    expect((await fixture.gateway.call(id)).ending).not.toBe(CallEnding.COMPLETED);
  });
});

describe("refused, free of charge", () => {
  it.each([
    ["no prompt", { ...ask, prompt: undefined }, "prompt"],
    ["a prompt that is a number", { ...ask, prompt: 5 }, "prompt"],
    ["prompts of two kinds", { ...ask, prompt: ["a", 5] }, "prompt"],
    ["an empty list", { ...ask, prompt: [] }, "prompt"],
    ["no model", { ...ask, model: undefined }, "model"],
    ["a model of embeddings", { ...ask, model: "embedder" }, "model"],
    ["a vendor without completions", { ...ask, model: "claude" }, undefined],
    ["a negative limit", { ...ask, max_tokens: -1 }, "max_tokens"],
    ["no choices", { ...ask, n: 0 }, "n"],
    ["a stream flag that is a text", { ...ask, stream: "yes" }, "stream"],
    ["stream options that are no object", { ...ask, stream_options: 5 }, "stream_options"],
    ["a dearer service", { ...ask, service_tier: "priority" }, "service_tier"],
    ["a search", { ...ask, plugins: [{ id: "web" }] }, "plugins"],
    ["settings of the vendor's", { ...ask, preset: "research" }, "preset"],
    ["other models", { ...ask, models: ["dearer"] }, "models"],
    ["dearer hosts", { ...ask, provider: { order: ["dearer"] } }, "provider"],
  ])("a completion request with %s is refused, free of charge", async (_name, body, param) => {
    const headers = { "x-request-id": "refused" };
    const got = await expectFree(fixture.gateway, fixture.customer, () =>
      fixture.send("/v1/completions", { body: JSON.stringify(body), headers }),
    );
    expect(got.status).toBe(400);
    if (param !== undefined) expect(errorOf(got)["param"]).toBe(param);
    expect(vendor().requests).toHaveLength(0);
  });
});
