/** R-TXT-13: a figure in a vendor's usage that the gateway does not know raises an alarm. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { asksForStream, type ReplyStyle, textReply } from "../../support/text-replies.ts";
import { newRequestId, styleVendors, useGateway } from "../harness.ts";

const state: { vendor?: PlainVendor; style: ReplyStyle; usage: object } = {
  style: "chat",
  usage: {},
};

beforeAll(async () => {
  state.vendor = await startPlainVendor((request) => {
    const { style, usage } = state;
    return textReply(style, { text: "Hello", usage }, asksForStream(request));
  });
});
afterAll(() => state.vendor?.close());

const styles = ["chat", "responses", "messages", "gemini"] as const;

const fixture = useGateway(() => ({
  vendors: styleVendors(state.vendor?.url ?? ""),
  models: Object.fromEntries(
    styles.map((style) => [style, { routes: [{ vendor: style, model: "vendor-model" }] }]),
  ),
}));

/** A usage of 10 and 5 tokens with further members. */
const usageOf: Record<ReplyStyle, (more: object) => object> = {
  chat: (more) => ({ prompt_tokens: 10, completion_tokens: 5, ...more }),
  responses: (more) => ({ input_tokens: 10, output_tokens: 5, ...more }),
  messages: (more) => ({ input_tokens: 10, output_tokens: 5, ...more }),
  gemini: (more) => ({ promptTokenCount: 10, candidatesTokenCount: 5, ...more }),
};

const bodies: Record<string, (model: string, stream: boolean) => readonly [string, object]> = {
  chat: (model, stream) => [
    "/v1/chat/completions",
    { model, stream, messages: [{ role: "user", content: "Hi" }] },
  ],
  responses: (model, stream) => ["/v1/responses", { model, stream, input: "Hi" }],
  messages: (model, stream) => [
    "/v1/messages",
    { model, stream, max_tokens: 64, messages: [{ role: "user", content: "Hi" }] },
  ],
  gemini: (model, stream) => [
    `/gemini/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    { contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
  ],
};

async function call(caller: string, stream: boolean) {
  const { gateway, customer } = fixture;
  const [path, body] = bodies[caller]?.(state.style, stream) ?? ["", {}];
  const id = newRequestId();
  const reply = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${customer.key}`,
      "x-goog-api-key": customer.key,
      "content-type": "application/json",
      "x-request-id": id,
    },
    body: JSON.stringify(body),
  });
  expect([reply.status, (await reply.text()).includes("Hello")]).toEqual([200, true]);
  return gateway.call(id);
}

async function alarms(vendor: string): Promise<number> {
  const metrics = await (await fetch(`${fixture.gateway.internalUrl}/metrics`)).text();
  const line = `uas_upstream_alarms_total{vendor="${vendor}",reason="usage_unknown"} `;
  return Number(metrics.split(line)[1]?.split("\n")[0] ?? 0);
}

function logged(vendor: string, members: string): number {
  return fixture.gateway.log.filter(
    (line) => line.includes(`"vendor":"${vendor}"`) && line.includes(`"members":"${members}"`),
  ).length;
}

const directions = styles.flatMap((vendor) =>
  ["chat", "responses", "messages", ...(vendor === "gemini" ? ["gemini"] : [])].map(
    (caller) => [caller, vendor] as const,
  ),
);

it.each(directions)(
  "an unknown figure raises the alarm, and is logged once: %s at a vendor of %s",
  async (caller, style) => {
    const name = `${caller}_extra_tokens`;
    state.style = style;
    state.usage = usageOf[style]({ [name]: 7, more_details: { of: [{ things: "12" }] } });
    const members = `${name},more_details`;
    const before = await alarms(style);
    for (const stream of [false, true]) {
      const { usage } = await call(caller, stream);
      // It is charged by the figures that are known.
      expect(usage).toMatchObject({ inputTokens: 10, outputTokens: 5 });
    }
    expect(await alarms(style)).toBe(before + 2);
    expect(logged(style, members)).toBe(1);
  },
);

// Usage of messages has no total.
it.each(["chat", "responses", "gemini"] as const)(
  "an unknown figure that the total includes is charged as output: %s",
  async (style) => {
    state.style = style;
    const total = style === "gemini" ? "totalTokenCount" : "total_tokens";
    state.usage = usageOf[style]({ novel_tokens: 20, [total]: 35 });
    for (const stream of [false, true]) {
      const { usage } = await call("chat", stream);
      expect(usage).toMatchObject({ inputTokens: 10, outputTokens: 25, reasoningTokens: 20 });
    }
  },
);

it.each([
  [
    "chat",
    {
      novel: 0,
      novel_details: { a: 0, b: null },
      words: "a",
      queue_time: 0.5,
      cost: 0.1,
      tokens_per_sec: 9,
    },
  ],
  ["responses", { novel: 0, is_novel: true, cost_details: { upstream_inference_cost: 0.1 } }],
  ["messages", { service_tier: "standard", inference_geo: "us", novel: null }],
  ["gemini", { trafficType: "ON_DEMAND", novelTokenCount: 0 }],
] as const)(
  "words, zeros, durations and amounts of money are no unknown figures: %s %j",
  async (style, more) => {
    state.style = style;
    state.usage = usageOf[style](more);
    const before = await alarms(style);
    await call("chat", false);
    expect(await alarms(style)).toBe(before);
  },
);
