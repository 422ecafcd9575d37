import { describe, expect, it } from "vitest";
import { answer, type Caller, type Json, type Vendor, waysBack } from "./translation.ts";
import { replyOf, said } from "./replies.ts";

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

/** What a client is told of it. Gemini writes no cache of its own. */
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
