import { describe, expect, it } from "vitest";
import { answer, type Got, stream } from "./translation.ts";
import { chunk, replyOf } from "./replies.ts";

const open = (index: number, id: string, args = "") => ({
  index,
  id,
  type: "function",
  function: { name: "f", arguments: args },
});
const more = (index: number, args: string) => ({ index, function: { arguments: args } });
const deltas = (...calls: readonly object[]) => calls.map((call) => chunk({ tool_calls: [call] }));

const interleaved = [
  chunk({ role: "assistant", content: null }),
  ...deltas(open(0, "a"), open(1, "b"), more(0, '{"x"'), more(1, '{"y"'), more(0, ":1}")),
  ...deltas(more(1, ":2}")),
  chunk({}, "tool_calls"),
  "[DONE]",
];

/** The blocks of a messages stream, checked to come one at a time. */
function blocksOf({ events }: Got) {
  const blocks: { id: string; json: string }[] = [];
  let current = -1;
  for (const { type, index, content_block, delta } of events) {
    if (type === "content_block_start") {
      expect(current).toBe(-1);
      expect(index).toBe(blocks.length);
      current = index;
      blocks.push({ id: content_block.id, json: "" });
    } else if (type === "content_block_delta") {
      expect(index).toBe(current);
      const block = blocks[index];
      if (block !== undefined) block.json += delta.partial_json;
    } else if (type === "content_block_stop") current = -1;
  }
  return blocks;
}

describe("wire §3, argument deltas", () => {
  it("chat → messages: calls that interleave come one block at a time", () => {
    expect(blocksOf(stream({ from: "chat", to: "messages" }, interleaved))).toEqual([
      { id: "a", json: '{"x":1}' },
      { id: "b", json: '{"y":2}' },
    ]);
  });

  it("argument deltas become separate items: chat → responses", () => {
    const { events } = stream({ from: "chat", to: "responses" }, interleaved);
    expect(events.at(-1).response.output).toMatchObject([
      { call_id: "a", arguments: '{"x":1}' },
      { call_id: "b", arguments: '{"y":2}' },
    ]);
  });

  it("responses → messages: items that interleave come one block at a time", () => {
    const item = (at: number, id: string) => ({
      type: "response.output_item.added",
      output_index: at,
      item: { type: "function_call", id: `fc_${at}`, call_id: id, name: "f", arguments: "" },
    });
    const delta = (at: number, text: string) => ({
      type: "response.function_call_arguments.delta",
      output_index: at,
      item_id: `fc_${at}`,
      delta: text,
    });
    const done = (at: number, id: string, args: string) => ({
      type: "response.output_item.done",
      output_index: at,
      item: { type: "function_call", id: `fc_${at}`, call_id: id, name: "f", arguments: args },
    });
    const got = stream({ from: "responses", to: "messages" }, [
      { type: "response.created", response: { id: "resp_1" } },
      item(0, "a"),
      item(1, "b"),
      delta(1, '{"y":2}'),
      delta(0, '{"x":1}'),
      done(0, "a", '{"x":1}'),
      done(1, "b", '{"y":2}'),
      { type: "response.completed", response: { id: "resp_1", status: "completed", output: [] } },
    ]);
    expect(blocksOf(got)).toEqual([
      { id: "a", json: '{"x":1}' },
      { id: "b", json: '{"y":2}' },
    ]);
  });

  it("messages → chat: each call has a separate index", () => {
    const use = (index: number, id: string, json: string) => [
      {
        type: "content_block_start",
        index,
        content_block: { type: "tool_use", id, name: "f", input: {} },
      },
      { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: "" } },
      {
        type: "content_block_delta",
        index,
        delta: { type: "input_json_delta", partial_json: json },
      },
      { type: "content_block_stop", index },
    ];
    const { events } = stream({ from: "messages", to: "chat" }, [
      { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 1 } } },
      ...use(0, "a", '{"x":1}'),
      ...use(1, "b", '{"y":2}'),
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
      { type: "message_stop" },
    ]);
    const calls = events.flatMap(({ choices }) => choices[0].delta.tool_calls ?? []);
    expect(calls.flatMap(({ index, id }) => (id === undefined ? [] : [[index, id]]))).toEqual([
      [0, "a"],
      [1, "b"],
    ]);
    const args = (of: number) =>
      calls.map((call) => (call.index === of ? call.function.arguments : "")).join("");
    expect([args(0), args(1)]).toEqual(['{"x":1}', '{"y":2}']);
  });
});

const reply = (args: string, finish_reason: string) =>
  replyOf("chat", {
    chat: { tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: args } }] },
    end: { finish_reason },
  });
const streamed = (args: string, finish: string) => [
  chunk({ role: "assistant", content: null }),
  ...deltas(open(0, "a", args)),
  chunk({}, finish),
  "[DONE]",
];

describe("wire §3, argument deltas: none at all are an empty object", () => {
  it("arguments without any delta are an empty object: chat → messages", () => {
    const way = { from: "chat", to: "messages" } as const;
    expect(answer(way, reply("", "tool_calls")).body.content).toMatchObject([{ input: {} }]);
    expect(blocksOf(stream(way, streamed("", "tool_calls")))).toEqual([{ id: "a", json: "{}" }]);
  });

  it("arguments without any delta are an empty object: chat → responses", () => {
    const way = { from: "chat", to: "responses" } as const;
    expect(answer(way, reply("", "tool_calls")).body.output).toMatchObject([{ arguments: "{}" }]);
    const { events } = stream(way, streamed("", "tool_calls"));
    expect(events.at(-1).response.output).toMatchObject([{ arguments: "{}" }]);
  });

  it.each(["messages", "gemini"] as const)(
    "arguments without any delta are an empty object: %s → chat",
    (from) => {
      const whole = replyOf(from, {
        messages: [{ type: "tool_use", id: "a", name: "f" }],
        gemini: [{ functionCall: { id: "a", name: "f" } }],
      });
      const [choice] = answer({ from, to: "chat" }, whole).body.choices;
      expect(choice.message.tool_calls[0].function.arguments).toBe("{}");
    },
  );
});

describe("arguments that the length limit cut are shown as cut, whole and streamed", () => {
  const cut = '{"path":"/tm';

  it("arguments that the length limit cut are shown as cut: chat → messages", () => {
    const way = { from: "chat", to: "messages" } as const;
    expect(answer(way, reply(cut, "length")).body).toMatchObject({
      stop_reason: "max_tokens",
      content: [{ type: "tool_use", input: { partial_json: cut } }],
    });
    expect(blocksOf(stream(way, streamed(cut, "length")))).toEqual([{ id: "a", json: cut }]);
  });

  it("arguments that the length limit cut are shown as cut: chat → responses", () => {
    const way = { from: "chat", to: "responses" } as const;
    const expected = [{ type: "function_call", status: "incomplete", arguments: cut }];
    expect(answer(way, reply(cut, "length")).body.output).toMatchObject(expected);
    const { events } = stream(way, streamed(cut, "length"));
    expect(events.at(-1).response).toMatchObject({ status: "incomplete", output: expected });
  });
});
