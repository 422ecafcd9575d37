/** Forbidden requests are refused before the vendor is called, on every path, free of charge. */
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { type Customer, type Gateway, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { strictMessages } from "../../support/upstream/messages-strict.ts";
import { strictResponses } from "../../support/upstream/responses-strict.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { expectFree } from "../harness.ts";

let anthropic: Upstream;
let openai: Upstream;
let gateway: Gateway;
let customer: Customer;

beforeAll(async () => {
  anthropic = await startUpstream({ style: strictMessages() });
  openai = await startUpstream({ style: strictResponses() });
  gateway = await startGateway({
    vendors: {
      anthropic: { kind: "anthropic", baseUrl: anthropic.origin, apiKey: anthropic.secret },
      openai: {
        kind: "openai",
        dialects: ["responses"],
        baseUrl: openai.baseUrl,
        apiKey: openai.secret,
      },
    },
    models: {
      claude: { routes: [{ vendor: "anthropic", model: "vendor-model" }] },
      gpt: { routes: [{ vendor: "openai", model: "vendor-model" }] },
    },
  });
  customer = await gateway.customer();
});
beforeEach(() => {
  anthropic.clear();
  openai.clear();
});
afterAll(async () => {
  await gateway?.close();
  await anthropic?.close();
  await openai?.close();
});

const messages = [{ role: "user", content: "Hi" }];
const claude = { model: "claude", max_tokens: 16, messages };

it.each([
  ["/v1/messages", "fallbacks", { ...claude, fallbacks: [{ model: "claude-opus-5" }] }],
  ["/v1/messages", "speed", { ...claude, speed: "fast" }],
  ["/v1/messages", "thread", { ...claude, thread: { type: "create" } }],
  [
    "/v1/messages",
    "messages[1].content[0].tool.definition.type",
    {
      ...claude,
      messages: [
        ...messages,
        {
          role: "system",
          content: [
            {
              type: "tool_addition",
              tool: { type: "tool_definition", definition: { type: "web_search_20260318" } },
            },
          ],
        },
      ],
    },
  ],
  ["/v1/messages", "compaction", { ...claude, compaction: { type: "summarize" } }],
  ["/v1/messages", "billing_policy", { ...claude, billing_policy: { type: "billing_policy" } }],
  ["/v1/messages", "fallback_credit_token", { ...claude, fallback_credit_token: "token" }],
  [
    "/v1/messages",
    "diagnostics.previous_message_id",
    { ...claude, diagnostics: { previous_message_id: "msg_1" } },
  ],
  ["/v1/responses", "multi_agent", { model: "gpt", input: "x", multi_agent: { enabled: true } }],
  [
    "/v1/responses",
    "access_programs.cyber",
    { model: "gpt", input: "x", background: true, access_programs: { cyber: "daybreak_red" } },
  ],
  ["/v1/responses", "conversation", { model: "gpt", input: "x", conversation: "conv_1" }],
  ["/v1/responses", "tools[0].type", { model: "gpt", tools: [{ type: "image_generation" }] }],
  // Translated to the vendor's style: there it is a tool of the vendor's.
  [
    "/v1/chat/completions",
    "tools.web_search",
    { model: "claude", messages, web_search_options: {} },
  ],
  [
    "/v1/responses",
    "tools.web_search",
    { model: "claude", input: "x", tools: [{ type: "web_search" }] },
  ],
  ["/v1/chat/completions", "service_tier", { model: "gpt", messages, service_tier: "priority" }],
])("%s refuses %s, which would be billed without a limit", async (path, param, body) => {
  const reply = await expectFree(gateway, customer, () =>
    send(`${gateway.url}${path}`, {
      headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  );
  expect([reply.status, reply.body.toString()]).toEqual([400, expect.stringContaining(param)]);
  expect([...anthropic.requests, ...openai.requests]).toEqual([]);
});

it("a typed caller's own tool of the vendor's is refused without a price for it", async () => {
  const transport = createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" });
  const opaque = {
    dialect: Dialect.RESPONSES,
    type: "code_interpreter",
    json: '{"type":"code_interpreter","container":{"type":"auto"}}',
  };
  const tools = [{ kind: { case: "opaque", value: opaque } }] as const;
  const refused = await expectFree(gateway, customer, () =>
    createClient(InferenceService, transport)
      .generate(
        {
          generation: {
            model: "gpt",
            conversation: {
              turns: [
                { role: Role.USER, parts: [{ kind: { case: "text", value: { text: "Hi" } } }] },
              ],
              tools: [...tools],
            },
          },
        },
        { headers: { authorization: `Bearer ${customer.key}` } },
      )
      .catch((error: unknown) => error),
  );
  expect(refused).toMatchObject({
    code: Code.InvalidArgument,
    message: expect.stringContaining("tools.code_execution") as unknown,
  });
  expect(openai.requests).toEqual([]);
});

it.each([
  ["an item", { type: "item_reference", json: '{"type":"item_reference","id":"msg_1"}' }],
  ["an item without a type", { type: "x", json: '{"id":"msg_1"}' }],
])(
  "a typed caller's own part of the vendor's style is refused, free of charge: %s",
  async (_, part) => {
    const transport = createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" });
    const opaque = { dialect: Dialect.RESPONSES, ...part };
    const going = expectFree(gateway, customer, () =>
      createClient(InferenceService, transport)
        .generate(
          {
            generation: {
              model: "gpt",
              conversation: {
                turns: [
                  { role: Role.USER, parts: [{ kind: { case: "opaque", value: opaque } }] },
                  { role: Role.USER, parts: [{ kind: { case: "text", value: { text: "Hi" } } }] },
                ],
              },
            },
          },
          { headers: { authorization: `Bearer ${customer.key}` } },
        )
        .catch((error: unknown) => error),
    );
    expect(await going).toMatchObject({ code: Code.InvalidArgument });
    expect(openai.requests).toEqual([]);
  },
);
