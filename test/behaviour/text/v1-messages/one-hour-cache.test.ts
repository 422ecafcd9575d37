/**
 * Prompts that a vendor caches for an hour: refused without a price for it, else charged by it
 * (R-TXT-10, R-MON-13).
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { priceDefault } from "../../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { newRequestId, useGateway } from "../../harness.ts";

const usage = {
  input_tokens: 100,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 1_000,
  cache_creation: { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 },
  output_tokens: 7,
};
const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-vendor",
  stop_sequence: null,
};
const whole = {
  ...message,
  content: [{ type: "text", text: "Hello" }],
  stop_reason: "end_turn",
  usage,
};
const events = [
  { type: "message_start", message: { ...message, content: [], stop_reason: null, usage } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } },
  { type: "message_stop" },
];
const stream = events
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join("");

const running: { vendor?: PlainVendor } = {};
beforeAll(async () => {
  running.vendor = await startPlainVendor(({ body }) =>
    body.includes('"stream":true')
      ? { headers: { "content-type": "text/event-stream" }, body: stream }
      : { body: JSON.stringify(whole) },
  );
});
afterAll(() => running.vendor?.close());

const routes = [{ vendor: "anthropic", model: "claude-vendor" }];
const fixture = useGateway(() => ({
  vendors: {
    anthropic: { baseUrl: running.vendor?.url ?? "", apiKey: "sk-messages", kind: "anthropic" },
  },
  models: {
    plain: { routes },
    priced: {
      routes,
      price: { ...priceDefault, cacheWrite: 300_000_000n, cacheWrite1h: 500_000_000n },
    },
  },
}));

const control = { type: "ephemeral", ttl: "1h" };
const own = {
  max_tokens: 16,
  system: [{ type: "text", text: "Be brief", cache_control: control }],
  messages: [{ role: "user", content: "Hi" }],
};

async function ask(path: string, body: object, id: string): Promise<Response> {
  const { gateway, customer } = fixture;
  return await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
      "x-request-id": id,
    },
    body: JSON.stringify(body),
  });
}

it("without a price it is a 400 that names the member and the unit, before the vendor is called", async () => {
  const asked = running.vendor?.requests.length;
  const response = await ask("/v1/messages", { ...own, model: "plain" }, newRequestId());
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringMatching(/system\[0\]\.cache_control\.ttl.*cache_write_1h/),
  ]);
  expect(running.vendor?.requests.length).toBe(asked);
});

// 100 × 250 + 400 × 300 + 600 × 500 + 7 × output nano-USD.
const costNanos = 25_000n + 120_000n + 300_000n + (7n * (priceDefault.output ?? 0n)) / 1_000_000n;

it.each([
  ["whole", "/v1/messages", own],
  ["streamed", "/v1/messages", { ...own, stream: true }],
  ["translated", "/v1/chat/completions", { messages: own.messages, max_tokens: 16 }],
  [
    "translated and streamed",
    "/v1/chat/completions",
    { messages: own.messages, max_tokens: 16, stream: true },
  ],
])("each token is charged by the life of its cache: %s", async (_, path, body) => {
  const id = newRequestId();
  const response = await ask(path, { ...body, model: "priced" }, id);
  await response.text();
  expect(response.status).toBe(200);
  const call = await fixture.gateway.call(id);
  expect(call.usage).toMatchObject({ cacheWriteTokens: 1_000, cacheWrite1hTokens: 600 });
  expect(call.cost?.amountNanos).toBe(costNanos);
});
