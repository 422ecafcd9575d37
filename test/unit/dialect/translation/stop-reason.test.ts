import { describe, expect, it } from "vitest";
import {
  answer,
  answerStreamed,
  stream,
  type Caller,
  type Got,
  type Json,
  type Vendor,
} from "./translation.ts";
import { chunk, type Content, replyOf, said } from "./replies.ts";

/** The end that a client sees, in the words of its style. */
const endings: Readonly<Record<Caller, (got: Got) => unknown>> = {
  chat: ({ body, events }) => {
    const [choice] = (body ?? events.findLast(({ choices }) => choices[0].finish_reason)).choices;
    return choice.finish_reason;
  },
  responses: ({ body, events }) => {
    const { status, incomplete_details } = body ?? events.at(-1).response;
    return incomplete_details === null ? status : `${status}/${incomplete_details.reason}`;
  },
  messages: ({ body, events }) =>
    (body ?? events.find(({ type }) => type === "message_delta").delta).stop_reason,
};

const text: Content = {
  chat: { content: "hi" },
  messages: [{ type: "text", text: "hi" }],
  responses: [said("hi")],
  gemini: [{ text: "hi" }],
};
const call: Content = {
  chat: { tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }] },
  messages: [{ type: "tool_use", id: "a", name: "f", input: {} }],
  responses: [{ type: "function_call", id: "fc_1", call_id: "a", name: "f", arguments: "{}" }],
  gemini: [{ functionCall: { name: "f", args: {} } }],
};

type Row = readonly [
  vendor: Vendor,
  end: Json,
  told: Readonly<Partial<Record<Caller, string>>>,
  content?: Content,
  dropped?: Readonly<Partial<Record<Caller, readonly string[]>>>,
];

const filtered = "incomplete/content_filter";
const cut = "incomplete/max_output_tokens";

const rows: readonly Row[] = [
  ["messages", { stop_reason: "end_turn" }, { chat: "stop", responses: "completed" }],
  [
    "messages",
    { stop_reason: "stop_sequence", stop_sequence: "END" },
    { chat: "stop", responses: "completed" },
    text,
    { chat: ["stop_sequence"], responses: ["stop_sequence"] },
  ],
  [
    "messages",
    { stop_reason: "pause_turn" },
    { chat: "stop", responses: "completed" },
    text,
    { chat: ["stop_reason"], responses: ["stop_reason"] },
  ],
  ["messages", { stop_reason: "max_tokens" }, { chat: "length", responses: cut }],
  [
    "messages",
    { stop_reason: "model_context_window_exceeded" },
    { chat: "length", responses: cut },
  ],
  ["messages", { stop_reason: "tool_use" }, { chat: "tool_calls", responses: "completed" }, call],
  ["messages", { stop_reason: "end_turn" }, { chat: "tool_calls", responses: "completed" }, call],
  ["messages", { stop_reason: "tool_use" }, { chat: "stop", responses: "completed" }, text],
  ["messages", { stop_reason: "max_tokens" }, { chat: "length", responses: cut }, call],
  ["messages", { stop_reason: "refusal" }, { chat: "content_filter", responses: filtered }],
  ["chat", { finish_reason: "stop" }, { messages: "end_turn", responses: "completed" }],
  ["chat", { finish_reason: "length" }, { messages: "max_tokens", responses: cut }],
  ["chat", { finish_reason: "tool_calls" }, { messages: "tool_use", responses: "completed" }, call],
  ["chat", { finish_reason: "stop" }, { messages: "tool_use", responses: "completed" }, call],
  ["chat", { finish_reason: "tool_calls" }, { messages: "end_turn", responses: "completed" }, text],
  ["chat", { finish_reason: "function_call" }, { messages: "end_turn" }, text],
  ["chat", { finish_reason: "length" }, { messages: "max_tokens", responses: cut }, call],
  ["chat", { finish_reason: "content_filter" }, { messages: "refusal", responses: filtered }],
  [
    "chat",
    { finish_reason: "stop" },
    { messages: "refusal", responses: "completed" },
    { chat: { refusal: "No." } },
  ],
  ["responses", {}, { chat: "stop", messages: "end_turn" }],
  ["responses", {}, { chat: "tool_calls", messages: "tool_use" }, call],
  [
    "responses",
    { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } },
    { chat: "length", messages: "max_tokens" },
  ],
  [
    "responses",
    { status: "incomplete", incomplete_details: { reason: "content_filter" } },
    { chat: "content_filter", messages: "refusal" },
  ],
  [
    "gemini",
    { finishReason: "STOP" },
    { chat: "stop", responses: "completed", messages: "end_turn" },
  ],
  [
    "gemini",
    { finishReason: "STOP" },
    { chat: "tool_calls", responses: "completed", messages: "tool_use" },
    call,
  ],
  [
    "gemini",
    { finishReason: "MAX_TOKENS" },
    { chat: "length", responses: cut, messages: "max_tokens" },
  ],
  [
    "gemini",
    { finishReason: "SAFETY" },
    { chat: "content_filter", responses: filtered, messages: "refusal" },
    text,
    { chat: ["stop_detail"], responses: ["stop_detail"] },
  ],
];

describe("wire §3, stop reason", () => {
  for (const [from, end, told, content = text, dropped = {}] of rows) {
    for (const to of ["chat", "responses", "messages"] as const) {
      const expected = told[to];
      if (expected === undefined) continue;
      const ofCalls = content === call ? " with calls" : "";
      it(`${from} ${JSON.stringify(end)}${ofCalls} → ${to} ${expected}, whole and streamed`, () => {
        const reply = replyOf(from, { ...content, end });
        for (const got of [answer({ from, to }, reply), answerStreamed({ from, to }, reply)]) {
          expect(endings[to](got)).toBe(expected);
          expect(got.dropped).toEqual(dropped[to] ?? []);
        }
      });
    }
  }
});

describe("a reply that announces a tool call and has nothing", () => {
  const nothing: Readonly<Record<"chat" | "messages", Content>> = {
    chat: { chat: { reasoning_content: "I call f." }, end: { finish_reason: "tool_calls" } },
    messages: {
      messages: [{ type: "thinking", thinking: "I call f.", signature: "s" }],
      end: { stop_reason: "tool_use" },
    },
  };
  const streams: Readonly<Record<"chat" | "messages", readonly unknown[]>> = {
    chat: [chunk({ reasoning_content: "I call f." }), chunk({}, "tool_calls"), "[DONE]"],
    messages: [
      { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 3 } } },
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "thinking", thinking: "I call f." },
      },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
      { type: "message_stop" },
    ],
  };
  const ways = (["chat", "messages"] as const).flatMap((from) =>
    (["chat", "responses", "messages"] as const).map((to) => ({ from, to })),
  );

  it.each(ways)("is an error: $from → $to, whole", ({ from, to }) => {
    expect(() => answer({ from, to }, replyOf(from, nothing[from]))).toThrow(/announced/);
  });

  it.each(ways)("is an error: $from → $to, streamed", ({ from, to }) => {
    const { text: got } = stream({ from, to }, streams[from]);
    expect(got).toContain("The model announced a tool call and sent none");
    expect(got).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
  });
});

describe("wire §3, stop reason: the explanation of a refusal is kept", () => {
  const explained = replyOf("messages", {
    end: { stop_reason: "refusal", stop_details: { type: "refusal", explanation: "No." } },
  });

  it("messages → chat: as the refusal, and the reply ends as OpenAI ends it", () => {
    const way = { from: "messages", to: "chat" } as const;
    expect(answer(way, explained).body.choices[0]).toMatchObject({
      message: { content: null, refusal: "No." },
      finish_reason: "stop",
    });
    const { events } = answerStreamed(way, explained);
    expect(events.flatMap(({ choices }) => choices[0].delta.refusal ?? []).join("")).toBe("No.");
    expect(events.at(-1).choices[0].finish_reason).toBe("stop");
  });

  it("messages → responses: as a refusal part", () => {
    const { body } = answer({ from: "messages", to: "responses" }, explained);
    expect(body.output).toMatchObject([{ content: [{ type: "refusal", refusal: "No." }] }]);
    expect(body.status).toBe("completed");
  });

  it.each(["chat", "responses"] as const)(
    "the explanation of a refusal is kept as details of the end: %s → messages",
    (from) => {
      const refused = {
        ...said(""),
        content: [{ type: "refusal", refusal: "No." }],
      };
      const reply = replyOf(from, { chat: { refusal: "No." }, responses: [refused] });
      expect(answer({ from, to: "messages" }, reply).body).toMatchObject({
        stop_reason: "refusal",
        stop_details: { type: "refusal", explanation: "No." },
      });
    },
  );

  it("the explanation of a filter is kept: gemini → messages", () => {
    const end = { finishReason: "SAFETY", finishMessage: "Unsafe." };
    const { body } = answer({ from: "gemini", to: "messages" }, replyOf("gemini", { end }));
    expect(body.stop_details.explanation).toBe("Unsafe.");
  });
});

it("wire §3, stop: chat → messages: the matching sequence is reported if the vendor reports it", () => {
  const reply = replyOf("chat", { ...text, end: { stop_reason: "END" } });
  expect(answer({ from: "chat", to: "messages" }, reply).body).toMatchObject({
    stop_reason: "stop_sequence",
    stop_sequence: "END",
  });
});
