import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type Caller, crossings, directions, type Json, send, type Vendor } from "./translation.ts";

const chatCall = (id: string) => ({
  id,
  type: "function",
  function: { name: "f", arguments: "{}" },
});
const item = (id: string) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" });
const use = (id: string) => ({ type: "tool_use", id, name: "f", input: {} });
const resultOf = (id: string, content: string) => ({
  type: "tool_result",
  tool_use_id: id,
  content,
});
const odd = `functions.f:0/${"x".repeat(70)}`;
const sha = createHash("sha256").update(odd).digest("hex");

const oddChat = {
  messages: [
    { role: "user", content: "q" },
    { role: "assistant", tool_calls: [chatCall(odd)] },
    { role: "tool", tool_call_id: odd, content: "1" },
  ],
};
const oddItems = {
  input: [item(odd), { type: "function_call_output", call_id: odd, output: "1" }],
};

crossings("ids: a call and its result get the same one that the vendor takes", [
  {
    from: "chat",
    to: "messages",
    given: oddChat,
    sent: {
      messages: [
        {},
        { content: [{ id: `toolu_${sha.slice(0, 40)}` }] },
        { content: [{ tool_use_id: `toolu_${sha.slice(0, 40)}` }] },
      ],
    },
  },
  {
    from: "chat",
    to: "responses",
    given: oddChat,
    sent: {
      input: [{}, { call_id: `call_${sha.slice(0, 48)}` }, { call_id: `call_${sha.slice(0, 48)}` }],
    },
  },
  {
    from: "responses",
    to: "chat",
    given: oddItems,
    sent: {
      messages: [
        { tool_calls: [{ id: `call_${sha.slice(0, 32)}` }] },
        { tool_call_id: `call_${sha.slice(0, 32)}` },
      ],
    },
  },
  {
    from: "responses",
    to: "messages",
    given: oddItems,
    sent: {
      messages: [
        { content: [{ id: `toolu_${sha.slice(0, 40)}` }] },
        { content: [{ tool_use_id: `toolu_${sha.slice(0, 40)}` }] },
      ],
    },
  },
]);

const repeatedIds: Readonly<Record<Caller, Json>> = {
  chat: {
    messages: [
      { role: "user", content: "q" },
      { role: "assistant", tool_calls: [chatCall("f:0"), chatCall("f:0")] },
      { role: "tool", tool_call_id: "f:0", content: "1" },
      { role: "tool", tool_call_id: "f:0", content: "2" },
      { role: "assistant", tool_calls: [chatCall("f:0")] },
      { role: "tool", tool_call_id: "f:0", content: "3" },
      { role: "assistant", tool_calls: [chatCall("")] },
      { role: "tool", tool_call_id: "", content: "4" },
    ],
  },
  responses: {
    input: [
      { role: "user", content: "q" },
      item("f:0"),
      item("f:0"),
      { type: "function_call_output", call_id: "f:0", output: "1" },
      { type: "function_call_output", call_id: "f:0", output: "2" },
      item("f:0"),
      { type: "function_call_output", call_id: "f:0", output: "3" },
      item(""),
      { type: "function_call_output", call_id: "", output: "4" },
    ],
  },
  messages: {
    messages: [
      { role: "user", content: "q" },
      { role: "assistant", content: [use("f_0"), use("f_0")] },
      { role: "user", content: [resultOf("f_0", "1"), resultOf("f_0", "2")] },
      { role: "assistant", content: [use("f_0")] },
      { role: "user", content: [resultOf("f_0", "3")] },
      { role: "assistant", content: [use("")] },
      { role: "user", content: [resultOf("", "4")] },
    ],
  },
};

interface Pairs {
  readonly calls: readonly string[];
  /** The ids that results name, with their texts. */
  readonly results: readonly (readonly [string, string])[];
}

// oxlint-disable typescript/no-explicit-any -- bodies of vendors
/** Reads the calls and results of a vendor's body. */
const pairsOf: Readonly<Record<Vendor, (body: any) => Pairs>> = {
  chat: ({ messages }) => ({
    calls: messages.flatMap(({ tool_calls = [] }: any) => tool_calls.map(({ id }: any) => id)),
    results: messages
      .filter(({ role }: any) => role === "tool")
      .map(({ tool_call_id, content }: any) => [tool_call_id, content]),
  }),
  responses: ({ input }) => ({
    calls: input
      .filter(({ type }: any) => type === "function_call")
      .map(({ call_id }: any) => call_id),
    results: input
      .filter(({ type }: any) => type === "function_call_output")
      .map(({ call_id, output }: any) => [call_id, output]),
  }),
  messages: ({ messages }) => {
    const blocks = messages.flatMap(({ content }: any) => content);
    return {
      calls: blocks.filter(({ type }: any) => type === "tool_use").map(({ id }: any) => id),
      results: blocks
        .filter(({ type }: any) => type === "tool_result")
        .map(({ tool_use_id, content }: any) => [tool_use_id, content]),
    };
  },
  gemini: ({ contents }) => {
    const parts = contents.flatMap(({ parts: all }: any) => all);
    return {
      calls: parts.flatMap(({ functionCall: each }: any) => (each ? [each.id] : [])),
      results: parts.flatMap(({ functionResponse: each }: any) =>
        each ? [[each.id, each.response.output]] : [],
      ),
    };
  },
};
// oxlint-enable typescript/no-explicit-any

describe("ids that repeat over turns, within a turn, or are empty", () => {
  it.each(directions)("$from → $to: each call has a unique id, and its result", (way) => {
    const { body } = send(way, repeatedIds[way.from]);
    const { calls, results } = pairsOf[way.to](body);
    expect(calls).toHaveLength(4);
    expect(new Set(calls).size).toBe(4);
    expect(results.map(([id]) => id)).toEqual(calls);
    expect(results.map(([, text]) => text)).toEqual(["1", "2", "3", "4"]);
    if (way.to === "messages") for (const id of calls) expect(id).toMatch(/^[a-zA-Z0-9_-]+$/);
  });
});
