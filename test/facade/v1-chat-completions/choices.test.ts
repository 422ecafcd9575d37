/** `n` of chat completions where the vendor speaks another style: as candidates of Gemini, else refused. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type NativeGateway, startGeminiGateway } from "../../native/gemini-gateway.ts";
import { send } from "../../support/raw-http.ts";
import { modelOf, useStyleGateway } from "../../support/style-gateway.ts";
import type { Customer } from "../../support/gateway.ts";
import { errorOf, expectFree, newRequestId, openaiOf } from "../harness.ts";

const messages = [{ role: "user" as const, content: "Hello" }];

describe("a model of Gemini", () => {
  let gateway: NativeGateway;
  let customer: Customer;
  beforeAll(async () => {
    gateway = await startGeminiGateway();
    customer = await gateway.customer();
  });
  beforeEach(() => gateway.vendor.clear());
  afterAll(() => gateway.close());

  const candidate = (index: number, part: object) => ({
    index,
    content: { role: "model", parts: [part] },
    finishReason: "STOP",
  });
  const reply = {
    candidates: [
      candidate(0, { text: "Good morning" }),
      candidate(1, { functionCall: { name: "greet", args: { at: "noon" } } }),
    ],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 300, totalTokenCount: 400 },
  };
  const tools = [
    { type: "function" as const, function: { name: "greet", parameters: { type: "object" } } },
  ];

  it("gives each candidate as a choice, and is charged for all of them", async () => {
    gateway.vendor.answer(() => ({ body: JSON.stringify(reply) }));
    const id = newRequestId();
    const made = await openaiOf(gateway, customer.key).chat.completions.create(
      { model: "gemini-x", messages, tools, n: 2 },
      { headers: { "x-request-id": id } },
    );
    expect(made.choices).toMatchObject([
      { index: 0, finish_reason: "stop", message: { content: "Good morning" } },
      {
        index: 1,
        finish_reason: "tool_calls",
        message: { tool_calls: [{ function: { name: "greet", arguments: '{"at":"noon"}' } }] },
      },
    ]);
    expect(made.usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 300 });
    expect(gateway.vendor.requests[0]?.json).toMatchObject({
      generationConfig: { candidateCount: 2 },
    });
    // 0.25 and 2.00 USD per million.
    expect((await gateway.call(id)).cost?.amountNanos).toBe(100n * 250n + 300n * 2_000n);
  });

  it("charges an estimate of all choices where the vendor reports no usage", async () => {
    const { usageMetadata: _, ...uncounted } = reply;
    gateway.vendor.answer(() => ({ body: JSON.stringify(uncounted) }));
    const id = newRequestId();
    const made = await openaiOf(gateway, customer.key).chat.completions.create(
      { model: "gemini-x", messages, n: 2 },
      { headers: { "x-request-id": id } },
    );
    expect(made.choices).toHaveLength(2);
    const { usage, cost } = await gateway.call(id);
    expect(made.usage?.completion_tokens).toBe(usage?.outputTokens);
    expect(usage?.outputTokens).toBeGreaterThan(0);
    expect(cost?.amountNanos).toBeGreaterThan(0n);
  });

  it("holds the longest of all choices", async () => {
    gateway.vendor.answer(() => ({ body: JSON.stringify(reply) }));
    // One choice of 1,000 tokens costs up to 2,000,000 nano-USD.
    const { key } = await gateway.customer({ balanceNanos: 3_000_000n });
    const ask = (n: number) =>
      openaiOf(gateway, key).chat.completions.create({
        ...{ model: "gemini-x", messages, n, max_tokens: 1_000 },
      });
    await expect(ask(2)).rejects.toMatchObject({ status: 402 });
    expect(gateway.vendor.requests).toEqual([]);
    await ask(1);
    expect(gateway.vendor.requests[0]?.body.toString()).not.toContain("candidateCount");
  });

  it("refuses to stream several choices, free of charge", async () => {
    const got = await expectFree(gateway, customer, () =>
      send(`${gateway.url}/v1/chat/completions`, {
        headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "gemini-x", messages, n: 2, stream: true }),
      }),
    );
    expect([got.status, errorOf(got)["param"]]).toEqual([400, "n"]);
    expect(errorOf(got)["message"]).toContain('leave out "stream"');
    expect(gateway.vendor.requests).toEqual([]);
  });
});

describe("a model whose vendor makes one reply at a time", () => {
  const fixture = useStyleGateway();

  it.each(["messages", "responses"] as const)("refuses several choices: %s", async (style) => {
    const customer = await fixture.gateway.customer();
    const asked = expectFree(fixture.gateway, customer, () =>
      openaiOf(fixture.gateway, customer.key).chat.completions.create({
        ...{ model: modelOf(style), messages, n: 2 },
      }),
    );
    await expect(asked).rejects.toMatchObject({
      status: 400,
      param: "n",
      message: expect.stringContaining("send the request 2 times"),
    });
  });
});
