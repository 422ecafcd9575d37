import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { ToolType } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { ReplySchema, StopReason } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { UnreadableReplyError } from "../../../../src/wire/json/value.ts";
import { replyOptions } from "./support.ts";

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
const decodeWith = (message: unknown, finish_reason = "stop", others: object = {}) =>
  chatCompletions.decodeReply(
    bytes({
      id: "chatcmpl-1",
      created: 5,
      choices: [{ index: 0, message, finish_reason, ...others }],
    }),
  );

function encode(init: MessageInitShape<typeof ReplySchema>) {
  const dropped: string[] = [];
  const options = replyOptions({ onDropped: (name) => dropped.push(name) });
  const body = chatCompletions.encodeReply(create(ReplySchema, init), options);
  return { body: JSON.parse(body.toString()), dropped };
}

describe("R-TXT-1: a vendor's reply is read in full", () => {
  it("a vendor's reply is read with reasoning, text and its sources, refusal and calls", () => {
    const annotation = {
      type: "url_citation",
      url_citation: { url: "https://x.test", title: "X", start_index: 0, end_index: 2 },
    };
    const reply = decodeWith({
      role: "assistant",
      reasoning_content: "hm",
      reasoning: "hm",
      content: "hi",
      annotations: [annotation],
      refusal: null,
      tool_calls: [
        { id: "a", type: "function", function: { name: "f", arguments: '{"a":1}' } },
        { type: "function", function: { name: "g", arguments: { b: 2 } } },
        { id: "c", type: "custom", custom: { name: "h", input: "x" } },
      ],
    });
    expect(reply).toMatchObject({
      id: "chatcmpl-1",
      created: 5n,
      stopReason: StopReason.TOOL_CALLS,
    });
    expect(reply.parts.map(({ kind }) => kind.value)).toMatchObject([
      {
        text: "hm",
        seal: { dialect: Dialect.CHAT_COMPLETIONS, signature: "reasoning_content" },
      },
      {
        text: "hi",
        citations: [
          {
            url: "https://x.test",
            title: "X",
            startIndex: 0,
            endIndex: 2,
            json: JSON.stringify(annotation),
          },
        ],
      },
      { id: "a", name: "f", input: '{"a":1}', type: ToolType.FUNCTION },
      { id: "call_chatcmpl-1_1", name: "g", input: '{"b":2}' },
      { id: "c", name: "h", input: "x", type: ToolType.CUSTOM },
    ]);
  });

  it.each<[string, unknown, StopReason, object?]>([
    ["stop", { content: "x" }, StopReason.END],
    ["stop", { content: null, refusal: "no" }, StopReason.REFUSAL],
    ["length", { content: "x" }, StopReason.LENGTH],
    ["content_filter", { content: "" }, StopReason.CONTENT_FILTER],
    ["function_call", { function_call: { name: "f", arguments: "" } }, StopReason.TOOL_CALLS],
    ["stop", { content: "x" }, StopReason.STOP_SEQUENCE, { stop_reason: "###" }],
    ["something new", { content: "x" }, StopReason.UNSPECIFIED],
  ])(
    "a vendor's reply is read with %s as the reason for its end",
    (word, message, reason, others) => {
      expect(decodeWith(message, word, others).stopReason).toBe(reason);
    },
  );

  it.each([
    ["Mistral", { type: "thinking", thinking: [{ type: "text", text: "hm" }] }],
    ["Databricks", { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] }],
  ])(
    "a vendor's reply is read where its content is a list with the thoughts of %s",
    (_, thoughts) => {
      const content = [thoughts, { type: "text", text: "hi" }];
      const texts = decodeWith({ content }).parts.map(({ kind }) => kind);
      expect(texts).toMatchObject([
        { case: "reasoning", value: { text: "hm" } },
        { case: "text", value: { text: "hi" } },
      ]);
    },
  );

  it.each<[string, unknown]>([
    ["no choice", { choices: [] }],
    ["an error", { error: { message: "x" }, choices: [{ message: { content: "" } }] }],
    ["a choice that failed", { choices: [{ message: {}, finish_reason: "error" }] }],
    ["a list", []],
  ])("a vendor's reply with %s is unreadable", (_, body) => {
    expect(() => chatCompletions.decodeReply(bytes(body))).toThrow(UnreadableReplyError);
  });
});

describe("R-ERR-4: a vendor's refusal is read", () => {
  it.each<[string, unknown, unknown]>([
    ["OpenAI's", { error: { message: "m", type: "t", code: "c" } }, { message: "m", code: "c" }],
    [
      "one without code",
      { error: { message: "m", type: "t", code: null } },
      { message: "m", code: "t" },
    ],
    ["a text", { error: "m" }, { message: "m", code: "" }],
    [
      "vLLM's",
      { object: "error", message: "m", type: "t", code: 400 },
      { message: "m", code: "t" },
    ],
    ["a proxy's", { detail: "m" }, { message: "m", code: "" }],
    ["none", { hello: 1 }, undefined],
  ])("a vendor's refusal is read in this form: %s", (_, body, expected) => {
    expect(chatCompletions.decodeError(bytes(body))).toEqual(expected);
  });

  it("a vendor's refusal that is no JSON is not read as a refusal", () => {
    expect(chatCompletions.decodeError(Buffer.from("<html>"))).toBeUndefined();
  });
});

describe("R-TXT-2: a reply for a client", () => {
  it("a reply for a client has every member that its SDK requires", () => {
    const { body, dropped } = encode({
      id: "msg_1",
      parts: [{ kind: { case: "text", value: { text: "hi" } } }],
      stopReason: StopReason.END,
      usage: { inputTokens: 3, cachedInputTokens: 1, cacheWriteTokens: 1, outputTokens: 2 },
      serviceTier: "default",
    });
    expect(body).toEqual({
      id: "chatcmpl-0123456789abcdef0123456789abcdef",
      object: "chat.completion",
      created: 1_700_000_000,
      model: "public",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "hi", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: {
        prompt_tokens: 3,
        completion_tokens: 2,
        total_tokens: 5,
        prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 1 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
      service_tier: "default",
    });
    expect(dropped).toEqual([]);
  });

  it("shows sources by their position in the whole content", () => {
    const cited = (text: string, init: object) => ({
      kind: {
        case: "text" as const,
        value: { text, citations: [{ dialect: Dialect.MESSAGES, json: "{}", ...init }] },
      },
    });
    const { body, dropped } = encode({
      parts: [
        { kind: { case: "text", value: { text: "abc" } } },
        cited("de", { url: "https://x.test", title: "X" }),
        cited("fgh", { url: "https://y.test", startIndex: 1, endIndex: 2 }),
        cited("i", {}),
      ],
    });
    expect(body.choices[0].message.content).toBe("abcdefghi");
    const places = body.choices[0].message.annotations.map(
      (each: { url_citation: object }) => each.url_citation,
    );
    expect(places).toEqual([
      { url: "https://x.test", title: "X", start_index: 3, end_index: 5 },
      { url: "https://y.test", title: "", start_index: 6, end_index: 7 },
    ]);
    expect(dropped).toEqual(["citations"]);
  });

  it("a reply for a client names what it loses", () => {
    const { body, dropped } = encode({
      parts: [
        {
          kind: {
            case: "reasoning",
            value: { text: "hm", seal: { dialect: Dialect.MESSAGES, signature: "s" } },
          },
        },
        {
          kind: {
            case: "opaque",
            value: { dialect: Dialect.MESSAGES, type: "server_tool_use", json: "{}" },
          },
        },
        { kind: { case: "toolCall", value: { id: "a", name: "f", type: ToolType.FUNCTION } } },
      ],
      stopReason: StopReason.STOP_SEQUENCE,
      stopSequence: "#",
    });
    expect(body.choices[0].message).toEqual({
      role: "assistant",
      content: null,
      refusal: null,
      reasoning_content: "hm",
      tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
    });
    expect(dropped).toEqual(["reasoning.seal", "server_tool_use", "stop_sequence"]);
  });

  it.each<[StopReason, string]>([
    [StopReason.UNSPECIFIED, "stop"],
    [StopReason.PAUSE, "stop"],
    [StopReason.LENGTH, "length"],
    [StopReason.TOOL_CALLS, "tool_calls"],
    [StopReason.CONTENT_FILTER, "content_filter"],
  ])("stop reason %s is %s", (stopReason, word) => {
    expect(encode({ stopReason }).body.choices[0].finish_reason).toBe(word);
  });

  it("contains the reason of a refusal", () => {
    const { body } = encode({ stopReason: StopReason.REFUSAL, stopDetail: "no" });
    expect(body.choices[0]).toMatchObject({
      message: { content: null, refusal: "no" },
      finish_reason: "stop",
    });
  });
});
