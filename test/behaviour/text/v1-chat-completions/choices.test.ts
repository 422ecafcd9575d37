/**
 * `n` of chat completions if the vendor speaks another style: as candidates of Gemini, else
 * refused.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type NativeGateway, startGeminiGateway } from "../../native/gemini-gateway.ts";
import { modelOf, useStyleGateway } from "../../../support/style-gateway.ts";
import type { Customer } from "../../../support/gateway.ts";
import { expectFree, newRequestId, openaiOf } from "../../harness.ts";

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

  it("a model of Gemini gives each candidate as a choice, and is charged for all of them", async () => {
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

  it("a model of Gemini charges an estimate of all choices where the vendor reports no usage", async () => {
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

  it("a model of Gemini holds the longest of all choices", async () => {
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

  const chunk = (candidates: readonly object[], more: object = {}) =>
    `data: ${JSON.stringify({ candidates, responseId: "r1", modelVersion: "gemini-x", ...more })}\r\n\r\n`;
  const said = (index: number, text: string, finishReason?: string) => ({
    ...(index > 0 && { index }),
    content: { role: "model", parts: [{ text }] },
    ...(finishReason !== undefined && { finishReason }),
  });
  const { usageMetadata } = reply;

  /** The text and the end of each choice, as the official SDK reads them. */
  async function readStream(n: number, id = newRequestId()) {
    const stream = await openaiOf(gateway, customer.key).chat.completions.create(
      {
        ...{ model: "gemini-x", messages, tools, n, stream: true },
        stream_options: { include_usage: true },
      },
      { headers: { "x-request-id": id } },
    );
    const choices = new Map<number, { text: string; calls: string; ends: string[] }>();
    const usages: unknown[] = [];
    for await (const { choices: now, usage } of stream) {
      if (usage) usages.push(usage);
      for (const { index, delta, finish_reason: end } of now) {
        const one = choices.get(index) ?? { text: "", calls: "", ends: [] };
        one.text += delta.content ?? "";
        one.calls += delta.tool_calls?.[0]?.function?.arguments ?? "";
        if (end !== null) one.ends.push(end);
        choices.set(index, one);
      }
    }
    return { choices: Object.fromEntries(choices), usages };
  }

  const streams = (...chunks: readonly string[]) =>
    gateway.vendor.answer(() => ({
      headers: { "content-type": "text/event-stream" },
      body: chunks.join(""),
    }));

  it("a model of Gemini streams each candidate as a choice, mixed as they come, and is charged for all of them", async () => {
    streams(
      chunk([said(0, "Good "), said(1, "Bon")]),
      chunk([said(1, "jour", "STOP")]),
      chunk([said(0, "morning", "STOP")]),
      chunk([candidate(2, { functionCall: { name: "greet", args: { at: "noon" } } })], {
        usageMetadata,
      }),
    );
    const id = newRequestId();
    const { choices, usages } = await readStream(3, id);
    expect(choices).toEqual({
      0: { text: "Good morning", calls: "", ends: ["stop"] },
      1: { text: "Bonjour", calls: "", ends: ["stop"] },
      2: { text: "", calls: '{"at":"noon"}', ends: ["tool_calls"] },
    });
    expect(usages).toMatchObject([{ prompt_tokens: 100, completion_tokens: 300 }]);
    expect(gateway.vendor.requests[0]?.json).toMatchObject({
      generationConfig: { candidateCount: 3 },
    });
    expect((await gateway.call(id)).cost?.amountNanos).toBe(100n * 250n + 300n * 2_000n);
  });

  it("a model of Gemini streams the choices that come, where the vendor makes fewer", async () => {
    streams(chunk([said(0, "Only", "STOP")], { usageMetadata }));
    const { choices } = await readStream(2);
    expect(choices).toEqual({ 0: { text: "Only", calls: "", ends: ["stop"] } });
  });

  it("a model of Gemini charges an estimate of all streamed choices where the vendor reports no usage", async () => {
    streams(chunk([said(0, "Good morning", "STOP"), said(1, "Good evening to you", "STOP")]));
    const id = newRequestId();
    const { usages } = await readStream(2, id);
    const { usage } = await gateway.call(id);
    expect(usages).toMatchObject([{ completion_tokens: usage?.outputTokens }]);
    expect(usage?.outputTokens).toBeGreaterThan(Buffer.byteLength("Good evening") / 4);
  });

  it("a model of Gemini ends a stream of choices with an error where one of them is cut off", async () => {
    streams(chunk([said(0, "Good "), said(1, "Bonjour", "STOP")]));
    await expect(readStream(2)).rejects.toMatchObject({ code: "upstream_error" });
    streams(chunk([said(0, "Good ")]), chunk([{ index: 1, finishReason: "MALFORMED_RESPONSE" }]));
    await expect(readStream(2)).rejects.toMatchObject({ code: "upstream_error" });
  });

  it("a model of Gemini ends all choices cleanly where the balance of a stream is used up", async () => {
    const text = "word ".repeat(2_000);
    streams(
      ...Array.from({ length: 20 }, () => chunk([said(0, text), said(1, text)])),
      chunk([said(0, "", "STOP"), said(1, "", "STOP")], { usageMetadata }),
    );
    const { key } = await gateway.customer({ balanceNanos: 40_000_000n });
    const stream = await openaiOf(gateway, key).chat.completions.create({
      ...{ model: "gemini-x", messages, n: 2, stream: true },
    });
    const ends: string[] = [];
    for await (const { choices } of stream) {
      for (const { index, finish_reason: end } of choices) {
        if (end !== null) ends.push(`${index} ${end}`);
      }
    }
    expect(ends).toEqual(["0 length", "1 length"]);
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
