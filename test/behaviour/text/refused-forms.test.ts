/**
 * Forms that vendors refuse do not reach them (R-TXT-14): each simulation is as strict as the real
 * vendor.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Customer, type Gateway, startGateway } from "../../support/gateway.ts";
import { strictChat } from "../../support/upstream/chat-strict.ts";
import { strictMessages } from "../../support/upstream/messages-strict.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";

let claude: Upstream;
let chat: Upstream;
let gateway: Gateway;
let customer: Customer;

const strictTemplate = { developerRole: "refused", lateSystem: "at_top" } as const;

beforeAll(async () => {
  claude = await startUpstream({ style: strictMessages() });
  chat = await startUpstream({ style: strictChat() });
  const model = "vendor-model";
  gateway = await startGateway({
    vendors: {
      claude: { kind: "anthropic", baseUrl: claude.origin, apiKey: claude.secret },
      chat: { kind: "openai-compatible", baseUrl: chat.baseUrl, apiKey: chat.secret },
    },
    models: {
      claude: { routes: [{ vendor: "claude", model }] },
      "claude-in-place": {
        routes: [{ vendor: "claude", model, quirks: { lateSystem: "in_place" } }],
      },
      chat: { routes: [{ vendor: "chat", model, quirks: strictTemplate }] },
    },
  });
  customer = await gateway.customer();
});
afterAll(async () => {
  await gateway?.close();
  await claude?.close();
  await chat?.close();
});

async function send(path: string, body: object) {
  const reply = await fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: reply.status, text: await reply.text() };
}

const jpg = `data:image/jpg;base64,${Buffer.from("\xff\xd8\xff", "latin1").toString("base64")}`;

const tools = [
  { type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } },
];
const called = (id: string) => ({
  role: "assistant",
  content: "\n",
  tool_calls: [{ id, type: "function", function: { name: "f", arguments: "{}" } }],
});

/** A chat that no vendor of messages takes as it is. */
const conversation = [
  { role: "system", content: " " },
  { role: "user", content: [{ type: "image_url", image_url: { url: jpg } }] },
  { role: "assistant", content: " \n" },
  { role: "developer", content: "Be brief." },
  { role: "user", content: "hi" },
  called("f:0"),
  { role: "system", content: "Be kind." },
  { role: "tool", tool_call_id: "f:0", content: "1" },
  called("f:0"),
  { role: "tool", tool_call_id: "f:0", content: [{ type: "text", text: " " }] },
  { role: "assistant", content: "Well," },
  { role: "system", content: "Be quick." },
];

it.each(["claude", "claude-in-place"])(
  "a chat with late system text, repeated ids, blank texts and image/jpg is answered by %s",
  async (model) => {
    const { status, text } = await send("/v1/chat/completions", {
      model,
      messages: conversation,
      tools,
    });
    expect([status, text]).toEqual([200, expect.any(String)]);
    const streamed = await send("/v1/chat/completions", {
      model,
      messages: [...conversation, { role: "assistant", content: "So \n" }],
      tools,
      stream: true,
    });
    expect([streamed.status, streamed.text]).toEqual([200, expect.stringContaining("[DONE]")]);
  },
);

it("a session with blocks that only messages know goes on at a vendor of chat completions", async () => {
  const { status, text } = await send("/v1/messages", {
    model: "chat",
    max_tokens: 64,
    tools: [{ name: "search", input_schema: { type: "object", properties: {} } }],
    messages: [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: [
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
          { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
          { type: "tool_use", id: "toolu_1", name: "search", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "toolu_1",
            content: [{ type: "tool_reference", tool_name: "search" }],
          },
        ],
      },
      { role: "system", content: "Be brief." },
    ],
  });
  expect([status, text]).toEqual([200, expect.any(String)]);
  const { messages } = chat.requests.at(-1)?.json ?? {};
  expect(messages).toMatchObject([{ role: "system", content: "Be brief." }, {}, {}, {}]);
  expect(JSON.stringify(messages)).toContain("is available");
});

it("a relayed chat has one system message at the top, and no developer, where its vendor demands it", async () => {
  const messages = [
    { role: "developer", content: "A" },
    { role: "user", content: "hi" },
    { role: "system", content: "B" },
    { role: "user", content: "go on" },
  ];
  const { status } = await send("/v1/chat/completions", { model: "chat", messages });
  expect(status).toBe(200);
  expect(chat.requests.at(-1)?.json?.["messages"]).toEqual([
    { role: "system", content: "A\n\nB" },
    messages[1],
    messages[3],
  ]);
});
