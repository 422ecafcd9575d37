import { describe, expect, it } from "vitest";
import { type Caller, crossings, directions, type Json, send } from "./translation.ts";

const png = "iVBORw0KGgo=";
const url = `data:image/png;base64,${png}`;

const chatCall = (id: string, args = "{}") => ({
  id,
  type: "function",
  function: { name: "f", arguments: args },
});
const use = (id: string, input = {}) => ({ type: "tool_use", id, name: "f", input });
const item = (id: string) => ({
  type: "function_call",
  call_id: id,
  name: "f",
  arguments: "{}",
});

/** Text beside two calls, their results, and the user's text behind them. */
const turns: Readonly<Record<Caller, Json>> = {
  chat: {
    messages: [
      { role: "user", content: "q" },
      { role: "assistant", content: "Wait.", tool_calls: [chatCall("a"), chatCall("b")] },
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "tool", tool_call_id: "b", content: "2" },
      { role: "user", content: "go on" },
    ],
  },
  responses: {
    input: [
      { role: "user", content: "q" },
      { role: "assistant", content: "Wait." },
      item("a"),
      item("b"),
      { type: "function_call_output", call_id: "a", output: "1" },
      { type: "function_call_output", call_id: "b", output: "2" },
      { role: "user", content: "go on" },
    ],
  },
  messages: {
    messages: [
      { role: "user", content: "q" },
      { role: "assistant", content: [{ type: "text", text: "Wait." }, use("a"), use("b")] },
      {
        role: "user",
        content: [
          { type: "text", text: "go on" },
          { type: "tool_result", tool_use_id: "a", content: "1" },
          { type: "tool_result", tool_use_id: "b", content: "2" },
        ],
      },
    ],
  },
};

const seen = {
  chat: turns.chat,
  responses: {
    input: [
      { role: "user" },
      { role: "assistant" },
      item("a"),
      item("b"),
      { call_id: "a", output: "1" },
      { call_id: "b", output: "2" },
      { role: "user" },
    ],
  },
  messages: {
    messages: [
      { role: "user" },
      { role: "assistant", content: [{ text: "Wait." }, use("a"), use("b")] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a" },
          { type: "tool_result", tool_use_id: "b" },
          { type: "text", text: "go on" },
        ],
      },
    ],
  },
  gemini: {
    contents: [
      { role: "user" },
      {
        role: "model",
        parts: [
          { text: "Wait." },
          { functionCall: { id: "a", name: "f", args: {} } },
          { functionCall: { id: "b" } },
        ],
      },
      { role: "user" },
    ],
  },
} as const;

describe("wire §3, tool results, and text beside tool calls", () => {
  it.each(directions.filter(({ from, to }) => !(from === "messages" && to === "responses")))(
    "$from → $to: results stand together behind their calls, the text beside them is kept",
    (way) => {
      const { body, dropped } = send(way, turns[way.from]);
      expect(body).toMatchObject(seen[way.to]);
      expect(dropped).toEqual([]);
    },
  );

  it("messages → responses: as items, in the order of the turn", () => {
    const { body } = send({ from: "messages", to: "responses" }, turns.messages);
    expect(body.input.map(({ type, role }: Json) => [type, role])).toEqual([
      ["message", "user"],
      ["message", "assistant"],
      ["function_call", undefined],
      ["function_call", undefined],
      ["message", "user"],
      ["function_call_output", undefined],
      ["function_call_output", undefined],
    ]);
  });
});

const failed = {
  messages: [
    { role: "user", content: "q" },
    { role: "assistant", content: [use("a")] },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "a", is_error: true, content: "no such" }],
    },
  ],
};

crossings("tool results: is_error has no home elsewhere: the text says it", [
  {
    from: "messages",
    to: "chat",
    given: failed,
    sent: { messages: [{}, {}, { role: "tool", content: "Error: no such" }] },
  },
  {
    from: "messages",
    to: "responses",
    given: failed,
    sent: { input: [{}, {}, { output: "Error: no such" }] },
  },
  {
    from: "messages",
    to: "gemini",
    with: "which has a place",
    given: failed,
    sent: {
      contents: [{}, {}, { parts: [{ functionResponse: { response: { error: "no such" } } }] }],
    },
  },
]);

const shown = {
  messages: [
    { role: "user", content: "q" },
    { role: "assistant", content: [use("a"), use("b")] },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "a",
          content: [
            { type: "text", text: "1" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
          ],
        },
        { type: "tool_result", tool_use_id: "b", content: "2" },
      ],
    },
  ],
};
const output = [
  { type: "input_text", text: "1" },
  { type: "input_image", image_url: url },
];
const shownItems = {
  input: [
    { role: "user", content: "q" },
    item("a"),
    item("b"),
    { type: "function_call_output", call_id: "a", output },
    { type: "function_call_output", call_id: "b", output: "2" },
  ],
};
const behind = {
  messages: [
    {},
    {},
    { role: "tool", tool_call_id: "a", content: "1" },
    { role: "tool", tool_call_id: "b", content: "2" },
    { role: "user", content: [{ type: "text" }, { type: "image_url", image_url: { url } }] },
  ],
};
const within = {
  contents: [
    {},
    {},
    {
      parts: [
        { functionResponse: { id: "a", parts: [{ inlineData: { data: png } }] } },
        { functionResponse: { id: "b" } },
      ],
    },
  ],
};

crossings("tool results: pictures", [
  { from: "messages", to: "chat", with: "behind all results", given: shown, sent: behind },
  {
    from: "messages",
    to: "responses",
    given: shown,
    sent: { input: [{}, {}, {}, { output }, {}] },
  },
  { from: "messages", to: "gemini", given: shown, sent: within },
  { from: "responses", to: "chat", with: "behind all results", given: shownItems, sent: behind },
  {
    from: "responses",
    to: "messages",
    given: shownItems,
    sent: {
      messages: [{}, {}, { content: [{ content: [{ text: "1" }, { type: "image" }] }, {}] }],
    },
  },
  { from: "responses", to: "gemini", given: shownItems, sent: within },
]);
