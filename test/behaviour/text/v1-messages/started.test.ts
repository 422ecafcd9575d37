/**
 * A stream that fails after its message_start, which reports output that never arrived, is free
 * (R-MON-8).
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Customer, type Gateway, startGateway } from "../../../support/gateway.ts";
import { send } from "../../../support/raw-http.ts";
import { strictMessages } from "../../../support/upstream/messages-strict.ts";
import { startUpstream, type Upstream } from "../../../support/upstream/upstream.ts";
import { expectFree } from "../../harness.ts";

let upstream: Upstream;
let gateway: Gateway;
let customer: Customer;

beforeAll(async () => {
  upstream = await startUpstream({ style: strictMessages() });
  const vendor = { kind: "anthropic", baseUrl: upstream.origin, apiKey: upstream.secret };
  gateway = await startGateway({ vendors: { sim: vendor } });
  customer = await gateway.customer();
});
afterAll(async () => {
  await gateway?.close();
  await upstream?.close();
});

const messages = [{ role: "user", content: "Hi" }];

it.each([
  ["/v1/messages", { max_tokens: 16, messages }],
  ["/v1/chat/completions", { messages }],
])(
  "a vendor's failure after a message has begun without content costs nothing at %s",
  async (path, body) => {
    const message = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "vendor-model",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 500_000, output_tokens: 8 },
    };
    upstream.script(async ({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const start = JSON.stringify({ type: "message_start", message });
      response.write(`event: message_start\ndata: ${start}\n\n`);
      setTimeout(() => response.destroy(), 50);
    });
    const reply = await expectFree(gateway, customer, () =>
      send(`${gateway.url}${path}`, {
        headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "public-model", stream: true, ...body }),
      }),
    );
    expect(reply.body.toString()).toContain("error");
  },
);
