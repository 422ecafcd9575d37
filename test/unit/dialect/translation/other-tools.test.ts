import { expect, it } from "vitest";
import { answer, crossings, directions, send, stream } from "./translation.ts";
import { chunk, replyOf } from "./replies.ts";

const rule = { syntax: "lark", definition: "start: /a/" };
const chatCustom = {
  tools: [
    {
      type: "custom",
      custom: { name: "sql", description: "Runs.", format: { type: "grammar", grammar: rule } },
    },
  ],
};
const custom = { type: "custom", name: "sql", description: "Runs." };
const responsesCustom = { tools: [{ ...custom, format: { type: "grammar", ...rule } }] };
const wrapper = { type: "object", properties: { input: { type: "string" } }, required: ["input"] };
const inWords = "Runs.\n\nThe input must follow this lark grammar:\nstart: /a/";

crossings("custom tools", [
  {
    from: "chat",
    to: "responses",
    with: "the grammar is flat there",
    given: chatCustom,
    sent: responsesCustom,
    without: ["tools.0.format.grammar"],
  },
  {
    from: "chat",
    to: "messages",
    with: "as a function with one text",
    given: chatCustom,
    sent: { tools: [{ name: "sql", description: inWords, input_schema: wrapper }] },
  },
  {
    from: "chat",
    to: "gemini",
    with: "as a function with one text",
    given: chatCustom,
    sent: { tools: [{ functionDeclarations: [{ name: "sql", parametersJsonSchema: wrapper }] }] },
    dropped: ["tools.format"],
  },
  {
    from: "responses",
    to: "chat",
    with: "the grammar is nested there",
    given: responsesCustom,
    sent: chatCustom,
  },
  {
    from: "responses",
    to: "messages",
    given: responsesCustom,
    sent: { tools: [{ name: "sql", description: inWords }] },
  },
  { from: "responses", to: "gemini", given: responsesCustom, dropped: ["tools.format"] },
]);

it("wire §3, custom tools: messages → responses: a call is unwrapped", () => {
  const call = { type: "tool_use", id: "t", name: "sql", input: { input: "select 1" } };
  const reply = replyOf("messages", { messages: [call], end: { stop_reason: "tool_use" } });
  const { body } = answer({ from: "messages", to: "responses" }, reply, {
    request: responsesCustom,
  });
  expect(body.output).toMatchObject([
    { type: "custom_tool_call", call_id: "t", input: "select 1" },
  ]);
});

it("wire §3, custom tools: chat → messages: a client's own calls stay functions", () => {
  const called = { index: 0, id: "t", function: { name: "f", arguments: '{"input":"a"}' } };
  const { events } = stream({ from: "chat", to: "messages" }, [
    chunk({ role: "assistant", tool_calls: [called] }),
    chunk({}, "tool_calls"),
    "[DONE]",
  ]);
  const pieces = events.flatMap(({ delta }) => delta?.partial_json ?? []);
  expect(pieces.join("")).toBe('{"input":"a"}');
});

const inner = { type: "function", name: "list", parameters: null, strict: false };
const spaced = {
  tools: [{ type: "namespace", name: "fs", description: "Files.", tools: [inner] }],
};
const described = ["tools.description"];

crossings("namespaces", [
  {
    from: "responses",
    to: "chat",
    given: spaced,
    sent: { tools: [{ function: { name: "fs__list" } }] },
    dropped: described,
  },
  {
    from: "responses",
    to: "messages",
    given: spaced,
    sent: { tools: [{ name: "fs__list" }] },
    dropped: described,
  },
  {
    from: "responses",
    to: "gemini",
    given: spaced,
    sent: { tools: [{ functionDeclarations: [{ name: "fs__list" }] }] },
    dropped: described,
  },
]);

it("wire §3, namespaces: messages → responses: a call gets its own back", () => {
  const call = { type: "tool_use", id: "t", name: "fs__list", input: {} };
  const reply = replyOf("messages", { messages: [call] });
  const { body } = answer({ from: "messages", to: "responses" }, reply, { request: spaced });
  expect(body.output).toMatchObject([{ type: "function_call", namespace: "fs", name: "list" }]);
});

const place = { city: "Bern", country: "CH" };
const here = { type: "approximate", ...place };
const chatSearch = {
  web_search_options: {
    search_context_size: "low",
    user_location: { type: "approximate", approximate: place },
  },
};
const responsesSearch = {
  tools: [
    {
      type: "web_search",
      filters: { allowed_domains: ["a.test"] },
      search_context_size: "low",
      user_location: here,
    },
  ],
};
const messagesSearch = {
  tools: [
    {
      type: "web_search_20250305",
      name: "web_search",
      allowed_domains: ["a.test"],
      user_location: here,
      max_uses: 3,
    },
  ],
};

crossings("built-in tools: web search", [
  {
    from: "chat",
    to: "responses",
    given: chatSearch,
    sent: { tools: [{ type: "web_search", search_context_size: "low", user_location: here }] },
    without: ["web_search_options"],
  },
  {
    from: "chat",
    to: "messages",
    given: chatSearch,
    sent: { tools: [{ type: "web_search_20250305", name: "web_search", user_location: here }] },
    dropped: ["tools.search_context_size"],
  },
  {
    from: "chat",
    to: "gemini",
    given: { web_search_options: {} },
    sent: { tools: [{ googleSearch: {} }] },
  },
  {
    from: "responses",
    to: "messages",
    given: responsesSearch,
    sent: {
      tools: [{ type: "web_search_20250305", allowed_domains: ["a.test"], user_location: here }],
    },
    dropped: ["tools.search_context_size"],
  },
  {
    from: "responses",
    to: "gemini",
    given: { tools: [{ type: "web_search", user_location: here }] },
    sent: { tools: [{ googleSearch: {} }] },
    dropped: ["tools.user_location"],
  },
  {
    from: "responses",
    to: "gemini",
    with: "domains to keep to cannot be told",
    given: responsesSearch,
    refused: /allowed_domains/,
  },
  ...(["messages", "gemini"] as const).map((to) => ({
    from: "responses" as const,
    to,
    with: "of what the vendor has stored only",
    given: { tools: [{ type: "web_search", external_web_access: false }] },
    refused: /web_search/,
  })),
  {
    from: "responses",
    to: "chat",
    with: "few vendors have it there",
    given: responsesSearch,
    refused: /web_search/,
  },
  {
    from: "messages",
    to: "responses",
    given: messagesSearch,
    sent: {
      tools: [
        { type: "web_search", filters: { allowed_domains: ["a.test"] }, user_location: here },
      ],
    },
    dropped: ["tools.max_uses"],
  },
  {
    from: "messages",
    to: "gemini",
    with: "domains to keep to cannot be told",
    given: messagesSearch,
    refused: /allowed_domains/,
  },
  {
    from: "messages",
    to: "chat",
    with: "few vendors have it there",
    given: messagesSearch,
    refused: /web_search_20250305/,
  },
]);

it("wire §3, web search: responses → messages: a choice of functions leaves it in", () => {
  const { body } = send(
    { from: "chat", to: "messages" },
    {
      ...chatSearch,
      tools: [
        { type: "function", function: { name: "f" } },
        { type: "function", function: { name: "g" } },
      ],
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "f" } }] },
      },
    },
  );
  expect(body.tools).toMatchObject([{ name: "f" }, { name: "web_search" }]);
});

const builtIn = {
  chat: { type: "x_tool" },
  responses: { type: "code_interpreter", container: { type: "auto" } },
  messages: { type: "bash_20250124", name: "bash" },
} as const;

crossings("built-in tools: others are refused by name", [
  ...directions.map((way) => ({
    ...way,
    given: { tools: [builtIn[way.from]] },
    refused: new RegExp(builtIn[way.from].type),
  })),
  { from: "responses", to: "messages", given: { tools: [{ type: "mcp" }] }, refused: /mcp/ },
  { from: "messages", to: "responses", given: { mcp_servers: [{}] }, refused: /mcp_servers/ },
]);
