/**
 * POST /v1/messages to a vendor of the style: query and headers go along, bytes come back
 * (R-TXT-1).
 */
import Anthropic from "@anthropic-ai/sdk";
import AnthropicV0 from "anthropic-sdk-v0";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { newRequestId, useGateway } from "../../harness.ts";

const reply = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-vendor",
  content: [{ type: "text", text: "Hello" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 11, output_tokens: 7 },
  unknown: { kept: 2.5 },
};
const running: { vendor?: PlainVendor } = {};
beforeAll(async () => {
  running.vendor = await startPlainVendor(() => ({ body: JSON.stringify(reply) }));
});
afterAll(() => running.vendor?.close());

const fixture = useGateway(() => ({
  vendors: {
    anthropic: { baseUrl: running.vendor?.url ?? "", apiKey: "sk-messages", kind: "anthropic" },
  },
  models: { claude: { routes: [{ vendor: "anthropic", model: "claude-vendor" }] } },
}));

const body = {
  model: "claude",
  max_tokens: 16,
  messages: [{ role: "user" as const, content: "Hi" }],
  betas: ["context-management-2025-06-27"],
};

interface Setup {
  readonly apiKey: string;
  readonly baseURL: string;
  readonly defaultHeaders: Record<string, string>;
}

const clients = [
  {
    name: "1.x",
    ask: (setup: Setup) => new Anthropic(setup).beta.messages.create(body),
    url: "/v1/messages",
    version: "2026-10-21",
  },
  {
    name: "0.x",
    ask: (setup: Setup) => new AnthropicV0(setup).beta.messages.create(body),
    url: "/v1/messages?beta=true",
    version: "2023-06-01",
  },
].flatMap((each) => ["", "/v1"].map((base) => ({ ...each, base })));

it.each(clients)("SDK $name is served at {base}$base, betas and all (R-TXT-6)", async (row) => {
  const { ask, base, url, version } = row;
  const { gateway, customer } = fixture;
  const id = newRequestId();
  const message = await ask({
    apiKey: customer.key,
    baseURL: `${gateway.url}${base}`,
    defaultHeaders: { "x-request-id": id },
  });
  expect(message).toMatchObject({ ...reply, model: "claude" });
  expect(message._request_id).toBe(id);
  const request = running.vendor?.requests.at(-1);
  expect(request?.url).toBe(url);
  expect(request?.headers).toMatchObject({
    "anthropic-version": version,
    "anthropic-beta": "context-management-2025-06-27",
    "x-api-key": "sk-messages",
  });
  expect(request?.headers).not.toHaveProperty("authorization");
  const call = await gateway.call(id);
  expect(call.path).toBe(`${base}/v1/messages`);
  expect(call.usage).toMatchObject({ inputTokens: 11, outputTokens: 7 });
});
