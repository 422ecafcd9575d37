/**
 * Calls of tools without parameters, and inputs of free-text tools that the model wrapped its own
 * way.
 */
import { describe, expect, it } from "vitest";
import { chunk, replyOf } from "./replies.ts";
import {
  answer,
  answerStreamed,
  type Caller,
  type Got,
  type Json,
  stream,
  type Vendor,
} from "./translation.ts";

const inputs: Readonly<Record<Caller, (got: Got) => unknown>> = {
  chat: ({ body, events }) =>
    body === undefined
      ? events
          .flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
          .map((call) => call.function?.arguments ?? call.custom?.input ?? "")
          .join("")
      : (body.choices[0].message.tool_calls[0].function?.arguments ??
        body.choices[0].message.tool_calls[0].custom.input),
  responses: ({ body, events }) => {
    const [call] = (body ?? events.at(-1).response).output;
    return call.arguments ?? call.input;
  },
  messages: ({ body, events }) =>
    body === undefined
      ? events.map(({ delta }) => delta?.partial_json ?? "").join("")
      : JSON.stringify(body.content[0].input),
};

const whole = (vendor: Vendor, args: unknown): Json =>
  replyOf(vendor, {
    chat: {
      tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: args } }],
    },
    messages: [{ type: "tool_use", id: "a", name: "f", input: args }],
    responses: [{ type: "function_call", id: "fc_1", call_id: "a", name: "f", arguments: args }],
    gemini: [{ functionCall: { name: "f", args } }],
  });

/** Streams with the arguments in pieces. */
const streams: Readonly<
  Record<Vendor, (pieces: readonly string[], done?: string) => readonly unknown[]>
> = {
  chat: (pieces) => [
    chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "" } }] }),
    ...pieces.map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
    chunk({}, "tool_calls"),
    "[DONE]",
  ],
  messages: (pieces) => [
    { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 3 } } },
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "a", name: "f" },
    },
    ...pieces.map((partial_json) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json },
    })),
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ],
  responses: (pieces, done) => {
    const item = { type: "function_call", id: "fc_1", call_id: "a", name: "f", arguments: "" };
    const output = [{ ...item, arguments: done ?? pieces.join("") }];
    return [
      { type: "response.created", response: { id: "resp_1" } },
      { type: "response.output_item.added", output_index: 0, item },
      ...pieces.map((delta) => ({
        type: "response.function_call_arguments.delta",
        output_index: 0,
        item_id: "fc_1",
        delta,
      })),
      { type: "response.output_item.done", output_index: 0, item: output[0] },
      { type: "response.completed", response: { id: "resp_1", status: "completed", output } },
    ];
  },
  gemini: () => [
    {
      responseId: "r1",
      candidates: [{ content: { parts: [{ functionCall: { name: "f" } }] }, finishReason: "STOP" }],
    },
  ],
};

const callers = ["chat", "responses", "messages"] as const;
const vendors = ["chat", "responses", "messages", "gemini"] as const;
const ways = vendors.flatMap((from) => callers.map((to) => ({ from, to })));

describe("a call without parameters has an empty object", () => {
  it.each(ways)("$from → $to, whole", ({ from, to }) => {
    for (const args of ["null", "", "  ", null, undefined]) {
      // Messages and Gemini have objects, not texts.
      if (typeof args === "string" && (from === "messages" || from === "gemini")) continue;
      const reply = whole(from, args);
      expect([args, inputs[to](answer({ from, to }, reply))]).toEqual([args, "{}"]);
      expect([args, inputs[to](answerStreamed({ from, to }, reply))]).toEqual([args, "{}"]);
    }
  });

  it.each(ways)("$from → $to, streamed", ({ from, to }) => {
    for (const pieces of [["null"], ["nu", "ll"], [], [""], [" "]]) {
      const got = stream({ from, to }, streams[from](pieces));
      expect([pieces, inputs[to](got)]).toEqual([pieces, "{}"]);
    }
  });

  it.each(ways.filter(({ from }) => from !== "gemini"))(
    "and any other input arrives as it is, $from → $to",
    ({ from, to }) => {
      for (const pieces of [["{", '"a":1', "}"], ['{"a":null}'], ["{}"]]) {
        const got = stream({ from, to }, streams[from](pieces));
        expect(inputs[to](got)).toBe(pieces.join(""));
      }
    },
  );
});

describe("an input that comes twice", () => {
  const real = '{"path":"a","n":1.10}';
  const streaming = ways.filter(({ from }) => from !== "gemini");

  it.each(streaming)("follows an empty one in its place: $from → $to", ({ from, to }) => {
    for (const pieces of [
      ["{}", real],
      ["null", real],
      ["{}", '{"path":', '"a","n":1.10}'],
      ["{", "}", real],
    ]) {
      const got = stream({ from, to }, streams[from](pieces, real));
      expect([pieces, inputs[to](got)]).toEqual([pieces, real]);
    }
  });

  it.each(streaming)("arrives once: $from → $to", ({ from, to }) => {
    const pieces = ['{"path":', '"a","n":1.10}', real];
    expect(inputs[to](stream({ from, to }, streams[from](pieces, real)))).toBe(real);
  });
});

describe("the input of a free-text tool that a vendor has as a function", () => {
  const requests: Readonly<Record<"chat" | "responses", Json>> = {
    chat: { tools: [{ type: "custom", custom: { name: "f" } }] },
    responses: { tools: [{ type: "custom", name: "f" }] },
  };
  const patch = '*** Begin Patch\n"a"\n*** End Patch';
  const wrapping = (["messages", "gemini"] as const).flatMap((from) =>
    (["chat", "responses"] as const).map((to) => ({ from, to })),
  );

  it.each(wrapping)(
    "is its only text, whatever the model calls it: $from → $to",
    ({ from, to }) => {
      const asked = { request: requests[to] };
      for (const args of [
        { input: patch },
        { patch },
        { patch, timeout: 5 },
        { input: patch, mode: "x" },
      ]) {
        const reply = whole(from, args);
        expect(inputs[to](answer({ from, to }, reply, asked))).toBe(patch);
        expect(inputs[to](answerStreamed({ from, to }, reply, asked))).toBe(patch);
        if (from === "gemini") continue;
        const got = stream({ from, to }, streams[from]([JSON.stringify(args)]), asked);
        expect(inputs[to](got)).toBe(patch);
      }
    },
  );

  it.each(wrapping)(
    "stays as the model wrote it if no text is the only one: $from → $to",
    ({ from, to }) => {
      const asked = { request: requests[to] };
      const args = { patch, path: "a.txt" };
      expect(inputs[to](answer({ from, to }, whole(from, args), asked))).toBe(JSON.stringify(args));
    },
  );
});
