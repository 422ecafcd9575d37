import { describe, expect, it } from "vitest";
import { decodeUsage } from "../../../../src/dialect/chat-completions/usage.ts";
import { readUsage } from "../../../../src/dialect/responses/usage.ts";
import {
  answer,
  type Caller,
  type Json,
  stream,
  type Vendor,
  type WayBack,
  waysBack,
} from "./translation.ts";
import { chunk, replyOf, said } from "./replies.ts";

/** 100 read: 30 from the cache, 20 into it; 40 made, 10 of them thought. */
const told: Readonly<Record<Vendor, Json>> = {
  chat: {
    prompt_tokens: 100,
    completion_tokens: 40,
    total_tokens: 140,
    prompt_tokens_details: { cached_tokens: 30, cache_write_tokens: 20 },
    completion_tokens_details: { reasoning_tokens: 10 },
  },
  responses: {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 30, cache_write_tokens: 20 },
    output_tokens: 40,
    output_tokens_details: { reasoning_tokens: 10 },
    total_tokens: 140,
  },
  messages: {
    input_tokens: 50,
    cache_read_input_tokens: 30,
    cache_creation_input_tokens: 20,
    cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 0 },
    output_tokens: 40,
    output_tokens_details: { thinking_tokens: 10 },
  },
  gemini: {
    promptTokenCount: 100,
    cachedContentTokenCount: 30,
    candidatesTokenCount: 30,
    thoughtsTokenCount: 10,
    totalTokenCount: 140,
  },
};

/** Returns the usage that a client sees. Gemini reports no cache writes. */
function expected(from: Vendor, to: Caller): Json {
  const { cache_creation: _split, ...messages } = told.messages;
  const { chat, responses } = told;
  if (from !== "gemini") return { chat, responses, messages }[to];
  return {
    chat: { ...chat, prompt_tokens_details: { cached_tokens: 30 } },
    responses: {
      ...responses,
      input_tokens_details: { cached_tokens: 30, cache_write_tokens: 0 },
    },
    messages: { ...messages, input_tokens: 70, cache_creation_input_tokens: 0 },
  }[to];
}

const content = {
  chat: { content: "hi" },
  responses: [said("hi")],
  messages: [{ type: "text", text: "hi" }],
  gemini: [{ text: "hi" }],
};

describe("wire §3, usage: cached and written tokens are counted once, within the input or beside it", () => {
  it.each(waysBack)(
    "cached and written tokens are counted once, within the input or beside it: $from → $to",
    ({ from, to }) => {
      const reply = replyOf(from, { ...content, usage: told[from] });
      expect(answer({ from, to }, reply).body.usage).toEqual(expected(from, to));
    },
  );

  it.each(["chat", "responses"] as const)(
    "input tokens are never below 0: %s → messages",
    (from) => {
      const usage = {
        chat: { ...told.chat, prompt_tokens_details: { cached_tokens: 500 } },
        responses: { ...told.responses, input_tokens_details: { cached_tokens: 500 } },
      }[from];
      const { body } = answer({ from, to: "messages" }, replyOf(from, { ...content, usage }));
      expect(body.usage).toMatchObject({ input_tokens: 0, cache_read_input_tokens: 100 });
    },
  );
});

describe("figures that some vendors report in special places", () => {
  const chat = { prompt_tokens: 100, completion_tokens: 40, total_tokens: 140 };

  it.each([
    ["beside the details", { cached_tokens: 30 }],
    ["under DeepSeek's name", { prompt_cache_hit_tokens: 30, prompt_cache_miss_tokens: 70 }],
    [
      "in the details, which come first",
      { cached_tokens: 99, prompt_tokens_details: { cached_tokens: 30 } },
    ],
  ])("input tokens that were read from the cache are found %s", (_where, more) => {
    expect(decodeUsage({ ...chat, ...more })).toMatchObject({
      inputTokens: 100,
      cachedInputTokens: 30,
      outputTokens: 40,
    });
  });

  it("what a research read and thought is added to the input and the output that it is counted beside", () => {
    const usage = { ...chat, citation_tokens: 20_016, reasoning_tokens: 73_997 };
    expect(decodeUsage({ ...usage, num_search_queries: 18 })).toMatchObject({
      inputTokens: 20_116,
      outputTokens: 74_037,
      reasoningTokens: 73_997,
      webSearches: 18,
    });
    expect(decodeUsage({ ...usage, citation_tokens: 2 ** 31 - 1 })).toMatchObject({
      inputTokens: 2 ** 31 - 1,
    });
  });

  it("reasoning that is reported beside the details is part of the output, where nothing was cited", () => {
    expect(decodeUsage({ ...chat, reasoning_tokens: 10 })).toMatchObject({ outputTokens: 40 });
  });

  const response = { input_tokens: 100, output_tokens: 40, total_tokens: 140 };

  it.each([
    [
      "server_side_tool_usage_details",
      { web_search_calls: 3, code_interpreter_calls: 2, file_search_calls: 1 },
      { webSearches: 3, codeExecutions: 2, fileSearches: 1 },
    ],
    ["tool_calls_details", { search_web: { invocation: 3 } }, { webSearches: 3 }],
    ["tool_calls_details", { web_search: { invocation: 3 } }, { webSearches: 3 }],
    ["tool_calls_details", {}, {}],
  ])("the calls of tools are read from %s of a response's usage: %j", (member, calls, read) => {
    expect(readUsage({ ...response, [member]: calls })).toMatchObject({
      inputTokens: 100,
      outputTokens: 40,
      ...read,
    });
  });
});

describe("the input of a call that was held back until the vendor's figures came", () => {
  const custom = { tools: [{ type: "custom", name: "patch" }] };
  const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 5 };
  const calls = (...all: Json[]): Json => ({
    candidates: [
      { content: { parts: all.map((functionCall) => ({ functionCall })) }, finishReason: "STOP" },
    ],
    usageMetadata,
  });
  const fn = (members: Json) => ({ tool_calls: [{ index: 0, ...members }] });

  it.each<[string, WayBack, readonly unknown[], Json]>([
    ["nothing", { from: "gemini", to: "chat" }, [calls({ name: "f" })], {}],
    [
      "the text of a free-text tool",
      { from: "gemini", to: "responses" },
      [calls({ name: "patch", args: { input: "*** Begin Patch" } })],
      custom,
    ],
    [
      "an empty object",
      { from: "chat", to: "messages" },
      [
        chunk(fn({ id: "a", function: { name: "f", arguments: "{" } })),
        chunk(fn({ function: { arguments: "}" } })),
        chunk({}, "tool_calls"),
        { choices: [], usage: { prompt_tokens: 9, completion_tokens: 5 } },
        "[DONE]",
      ],
      {},
    ],
  ])("is counted in them: %s", (_name, way, events, request) => {
    const uncounted: unknown[] = [];
    stream(way, events, {
      request,
      charged: ({ reported, uncountedTextBytes }) => {
        uncounted.push([reported?.outputTokens, uncountedTextBytes]);
        return { due: reported, told: reported };
      },
    });
    expect(uncounted).toEqual([[5, 0]]);
  });

  it("text behind the figures is not", () => {
    const uncounted: unknown[] = [];
    const events = [
      chunk({ content: "Hi" }),
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 1 } },
      chunk({ content: " all" }, "stop"),
      "[DONE]",
    ];
    stream({ from: "chat", to: "messages" }, events, {
      charged: ({ reported, uncountedTextBytes }) => {
        uncounted.push(uncountedTextBytes);
        return { due: reported, told: reported };
      },
    });
    expect(uncounted).toEqual([4]);
  });
});
