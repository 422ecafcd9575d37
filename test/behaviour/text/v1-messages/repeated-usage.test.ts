/** The input of a stream is charged, whatever its last event repeats of it (R-MON-8). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Customer, type Gateway, startGateway } from "../../../support/gateway.ts";
import { send } from "../../../support/raw-http.ts";
import { strictMessages } from "../../../support/upstream/messages-strict.ts";
import { startUpstream, type Upstream } from "../../../support/upstream/upstream.ts";
import { newRequestId } from "../../harness.ts";

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

const input = {
  input_tokens: 1_400,
  cache_read_input_tokens: 600,
  cache_creation_input_tokens: 100,
};
const zeros = { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
const nulls = { input_tokens: null, cache_read_input_tokens: null };
// As long as the figures say.
const messages = [{ role: "user", content: "Hello there. ".repeat(700) }];

function event(data: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

it.each(
  ["/v1/messages", "/v1/chat/completions", "/v1/responses"].flatMap((path) =>
    [{}, zeros, nulls].map((repeated) => [path, repeated] as const),
  ),
)(
  "a stream at %s whose end repeats the input as %j is charged its input",
  async (path, repeated) => {
    upstream.script(({ response }) => {
      const message = {
        ...{ id: "msg_1", type: "message", role: "assistant", model: "vendor-model" },
        ...{ content: [], stop_reason: null, stop_sequence: null },
        usage: { ...input, output_tokens: 1 },
      };
      const delta = { stop_reason: "end_turn", stop_sequence: null };
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(
        [
          event({ type: "message_start", message }),
          event({
            type: "content_block_start",
            index: 0,
            content_block: { type: "text", text: "" },
          }),
          event({
            type: "content_block_delta",
            index: 0,
            delta: { type: "text_delta", text: "Hello" },
          }),
          event({ type: "content_block_stop", index: 0 }),
          event({ type: "message_delta", delta, usage: { ...repeated, output_tokens: 10 } }),
          event({ type: "message_stop" }),
        ].join(""),
      );
    });
    const id = newRequestId();
    const turns = path === "/v1/responses" ? { input: messages } : { messages };
    const limit = path === "/v1/messages" && { max_tokens: 16 };
    await send(`${gateway.url}${path}`, {
      headers: {
        authorization: `Bearer ${customer.key}`,
        "content-type": "application/json",
        "x-request-id": id,
      },
      body: JSON.stringify({ model: "public-model", stream: true, ...turns, ...limit }),
    });
    const call = await gateway.call(id);
    expect(call.usage).toMatchObject({
      inputTokens: 2_100,
      cachedInputTokens: 600,
      cacheWriteTokens: 100,
      outputTokens: 10,
    });
  },
);
