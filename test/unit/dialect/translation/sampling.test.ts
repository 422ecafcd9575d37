import { describe, expect, it } from "vitest";
import { crossings, directions, send } from "./translation.ts";

crossings("max tokens", [
  {
    from: "chat",
    to: "messages",
    with: "the model's own limit where none is told",
    given: {},
    sent: { max_tokens: 8_000 },
  },
  { from: "chat", to: "messages", given: { max_tokens: 7 }, sent: { max_tokens: 7 } },
  {
    from: "chat",
    to: "responses",
    given: { max_completion_tokens: 70 },
    sent: { max_output_tokens: 70 },
  },
  {
    from: "chat",
    to: "responses",
    with: "at least 16, and the client is told",
    given: { max_completion_tokens: 7 },
    sent: { max_output_tokens: 16 },
    dropped: ["max_completion_tokens"],
  },
  {
    from: "chat",
    to: "gemini",
    given: { max_completion_tokens: 7 },
    sent: { generationConfig: { maxOutputTokens: 7 } },
  },
  {
    from: "responses",
    to: "chat",
    given: { max_output_tokens: 70 },
    sent: { max_completion_tokens: 70 },
  },
  { from: "responses", to: "messages", given: {}, sent: { max_tokens: 8_000 } },
  {
    from: "responses",
    to: "gemini",
    given: { max_output_tokens: 70 },
    sent: { generationConfig: { maxOutputTokens: 70 } },
  },
  {
    from: "messages",
    to: "chat",
    given: { max_tokens: 7 },
    sent: { max_completion_tokens: 7 },
  },
  {
    from: "messages",
    to: "responses",
    with: "at least 16, and the client is told",
    given: { max_tokens: 7 },
    sent: { max_output_tokens: 16 },
    dropped: ["max_tokens"],
  },
  {
    from: "messages",
    to: "gemini",
    given: { max_tokens: 7 },
    sent: { generationConfig: { maxOutputTokens: 7 } },
  },
  {
    from: "messages",
    to: "chat",
    with: "none at all, to warm the cache",
    given: { max_tokens: 0 },
    refused: /^max_tokens: /,
  },
]);

const hot = { temperature: 1.5, top_p: 0.5 };

crossings("temperature", [
  {
    from: "chat",
    to: "messages",
    with: "cut to 1; top_p cannot stand beside it",
    given: hot,
    sent: { temperature: 1 },
    without: ["top_p"],
    dropped: ["temperature", "top_p"],
  },
  {
    from: "chat",
    to: "messages",
    with: "left out while it thinks",
    given: { temperature: 0.5, reasoning_effort: "low" },
    without: ["temperature"],
    dropped: ["temperature"],
  },
  { from: "chat", to: "responses", given: hot, sent: hot },
  {
    from: "chat",
    to: "gemini",
    given: hot,
    sent: { generationConfig: { temperature: 1.5, topP: 0.5 } },
  },
  { from: "responses", to: "chat", given: hot, sent: hot },
  {
    from: "responses",
    to: "messages",
    given: { temperature: 0.5 },
    sent: { temperature: 0.5 },
  },
  {
    from: "responses",
    to: "gemini",
    given: hot,
    sent: { generationConfig: { temperature: 1.5, topP: 0.5 } },
  },
  { from: "messages", to: "chat", given: { temperature: 0.5 }, sent: { temperature: 0.5 } },
  { from: "messages", to: "responses", given: { temperature: 0.5 }, sent: { temperature: 0.5 } },
  {
    from: "messages",
    to: "gemini",
    given: { temperature: 0.5 },
    sent: { generationConfig: { temperature: 0.5 } },
  },
]);

describe("wire §3, temperature: the version of the wire follows it", () => {
  it("the temperature follows the version of the wire: chat → messages", () => {
    const way = { from: "chat", to: "messages" } as const;
    expect(send(way, { temperature: 0.5 }).headers["anthropic-version"]).toBe("2023-06-01");
    expect(send(way, {}).headers["anthropic-version"]).toBe("2026-10-21");
  });
});

crossings("top_k", [
  { from: "messages", to: "chat", given: { top_k: 5 }, without: ["top_k"], dropped: ["top_k"] },
  {
    from: "messages",
    to: "responses",
    given: { top_k: 5 },
    without: ["top_k"],
    dropped: ["top_k"],
  },
  {
    from: "messages",
    to: "gemini",
    given: { top_k: 5 },
    sent: { generationConfig: { topK: 5 } },
  },
]);

const five = ["a", "b", "c", "d", "e"];

crossings("stop", [
  { from: "chat", to: "messages", given: { stop: "END" }, sent: { stop_sequences: ["END"] } },
  {
    from: "chat",
    to: "messages",
    with: "white space is refused there, so that the gateway looks for it",
    given: { stop: ["END", "\n\n"] },
    sent: { stop_sequences: ["END"] },
  },
  {
    from: "chat",
    to: "responses",
    with: "the gateway looks for them",
    given: { stop: "END" },
    without: ["stop"],
  },
  {
    from: "chat",
    to: "gemini",
    given: { stop: ["END"] },
    sent: { generationConfig: { stopSequences: ["END"] } },
  },
  {
    from: "messages",
    to: "chat",
    given: { stop_sequences: ["END"] },
    sent: { stop: ["END"] },
    without: ["stop_sequences"],
  },
  {
    from: "messages",
    to: "chat",
    with: "the gateway looks for more than it takes",
    given: { stop_sequences: five },
    sent: { stop: five.slice(0, 4) },
  },
  {
    from: "messages",
    to: "responses",
    given: { stop_sequences: ["END"] },
    without: ["stop", "stop_sequences"],
  },
  {
    from: "messages",
    to: "gemini",
    given: { stop_sequences: five },
    sent: { generationConfig: { stopSequences: five } },
  },
]);

const hints = {
  seed: 7,
  presence_penalty: 1,
  frequency_penalty: 1,
  logit_bias: { 5: 1 },
  logprobs: true,
  top_logprobs: 2,
  prediction: { type: "content", content: "x" },
};
const unknownToAll = ["logit_bias", "logprobs", "top_logprobs", "prediction"];
const sampled = ["seed", "presence_penalty", "frequency_penalty"];

crossings("n, logprobs, logit_bias, seed, penalties, prediction, modalities", [
  {
    from: "chat",
    to: "messages",
    given: hints,
    without: Object.keys(hints),
    dropped: [...sampled, ...unknownToAll],
  },
  {
    from: "chat",
    to: "responses",
    given: hints,
    without: Object.keys(hints),
    dropped: [...sampled, ...unknownToAll],
  },
  {
    from: "chat",
    to: "gemini",
    given: hints,
    sent: { generationConfig: { seed: 7, presencePenalty: 1, frequencyPenalty: 1 } },
    dropped: unknownToAll,
  },
  {
    from: "responses",
    to: "chat",
    given: { top_logprobs: 2 },
    dropped: ["top_logprobs"],
  },
  ...directions
    .filter(({ from }) => from === "chat")
    .flatMap((way) => [
      { ...way, with: "one choice", given: { n: 1, modalities: ["text"] } },
      { ...way, with: "sound", given: { modalities: ["text", "audio"] }, refused: /^modalities: / },
      {
        ...way,
        with: "a voice",
        given: { audio: { voice: "x", format: "mp3" } },
        refused: /^audio: /,
      },
    ]),
]);
