/**
 * Members of compatible chat vendors that must return with their call or message, through clients
 * of every style.
 */
import { describe, expect, it } from "vitest";
import { chunk, replyOf } from "./replies.ts";
import { answer, type Got, type Json, send, stream } from "./translation.ts";

type Client = "responses" | "messages";

const google = { google: { thought_signature: "c2lnbmF0dXJl", score: 2512292042121000001n } };
const json = (value: unknown): string =>
  JSON.stringify(value, (_key, each) => (typeof each === "bigint" ? `n${each}` : each)).replaceAll(
    /"n(\d+)"/g,
    "$1",
  );
const text = { type: "reasoning.text", text: "I look.", index: 0, format: "x" };
const signed = { ...text, signature: "sig" };
const encrypted = { type: "reasoning.encrypted", data: "ZW5j", id: "call_1", index: 1 };

const call = (id: string, more: Json = {}): Json => ({
  id,
  type: "function",
  function: { name: "f", arguments: '{"a":1}' },
  ...more,
});

/** The next request of a client: the whole reply, and the results of the calls. */
const turns: Readonly<Record<Client, (got: Got) => Json>> = {
  responses: ({ body, events }) => {
    const { output } = body ?? events.at(-1).response;
    const calls = output.filter(({ type }: Json) => type === "function_call");
    const results = calls.map(({ call_id }: Json) => ({
      type: "function_call_output",
      call_id,
      output: "done",
    }));
    return { input: [{ role: "user", content: "hi" }, ...output, ...results] };
  },
  messages: ({ body, events }) => {
    const content = body?.content ?? blocksOf(events);
    const results = content
      .filter(({ type }: Json) => type === "tool_use")
      .map(({ id }: Json) => ({ type: "tool_result", tool_use_id: id, content: "done" }));
    return {
      messages: [
        { role: "user", content: "hi" },
        { role: "assistant", content },
        ...(results.length > 0
          ? [{ role: "user", content: results }]
          : [{ role: "user", content: "go on" }]),
      ],
    };
  },
};

/** The blocks of a stream, as the SDK collects them. */
function blocksOf(events: Got["events"]): Json[] {
  const blocks: Record<string, unknown>[] = [];
  const inputs: string[] = [];
  for (const { type, index, content_block, delta } of events) {
    if (type === "content_block_start") blocks[index] = { ...content_block };
    const block = blocks[index];
    if (type !== "content_block_delta" || block === undefined) continue;
    if (delta.type === "text_delta") block["text"] += delta.text;
    if (delta.type === "thinking_delta") block["thinking"] += delta.thinking;
    if (delta.type === "signature_delta") block["signature"] = delta.signature;
    if (delta.type === "input_json_delta")
      inputs[index] = (inputs[index] ?? "") + delta.partial_json;
  }
  return blocks.map((block, at) =>
    block["type"] === "tool_use" ? { ...block, input: JSON.parse(inputs[at] || "{}") } : block,
  );
}

/** The message of the assistant that the vendor gets in the next turn. */
function returned(client: Client, got: Got): { wire: Json; text: string } {
  const { body, text: sent } = send({ from: client, to: "chat" }, turns[client](got));
  const wire = body.messages.find(({ role }: Json) => role === "assistant");
  return { wire, text: sent };
}

const clients = ["responses", "messages"] as const;

interface Row {
  readonly name: string;
  /** Members of the vendor's message. */
  readonly message: Json;
  /** The same in deltas. */
  readonly deltas: readonly Json[];
}

const rows: readonly Row[] = [
  {
    name: "extra_content of a call",
    message: { tool_calls: [call("call_1", { extra_content: google }), call("call_2")] },
    deltas: [
      { tool_calls: [{ index: 0, ...call("call_1", { extra_content: google }) }] },
      { tool_calls: [{ index: 1, ...call("call_2") }] },
    ],
  },
  {
    name: "extra_content behind the call, whose id a style changes",
    message: { tool_calls: [call("functions.f:0", { extra_content: google })] },
    deltas: [
      { tool_calls: [{ index: 0, ...call("functions.f:0") }] },
      { tool_calls: [{ index: 0, extra_content: google, function: {} }] },
    ],
  },
  {
    name: "provider_specific_fields and thought_signature of a call",
    message: {
      tool_calls: [
        call("call_1", { provider_specific_fields: { thought_signature: "s" } }),
        call("call_2", { thought_signature: "t" }),
      ],
    },
    deltas: [
      {
        tool_calls: [
          {
            index: 0,
            ...call("call_1", { provider_specific_fields: { thought_signature: "s" } }),
          },
        ],
      },
      { tool_calls: [{ index: 1, ...call("call_2", { thought_signature: "t" }) }] },
    ],
  },
  {
    name: "reasoning_details of a message with calls",
    message: {
      reasoning: "I look.",
      reasoning_details: [signed, encrypted],
      tool_calls: [call("call_1")],
    },
    deltas: [
      { reasoning: "I ", reasoning_details: [{ ...text, text: "I " }] },
      { reasoning: "look.", reasoning_details: [{ ...text, text: "look." }] },
      { reasoning_details: [{ ...text, text: "", signature: "sig" }] },
      { reasoning_details: [encrypted], tool_calls: [{ index: 0, ...call("call_1") }] },
    ],
  },
  {
    name: "thinking_blocks of a message that is text only",
    message: {
      content: "Hello",
      reasoning_content: "Hm",
      thinking_blocks: [{ type: "thinking", thinking: "Hm", signature: "s" }],
    },
    deltas: [
      { reasoning_content: "Hm", thinking_blocks: [{ type: "thinking", thinking: "Hm" }] },
      { thinking_blocks: [{ type: "thinking", thinking: "", signature: "s" }] },
      { content: "Hello" },
    ],
  },
  {
    name: "members that come behind the text",
    message: { content: "Hello", extra_content: google, reasoning_opaque: "b3BhcXVl" },
    deltas: [{ content: "Hello" }, { extra_content: google, reasoning_opaque: "b3BhcXVl" }],
  },
];

const cases = rows.flatMap((row) => clients.map((client) => [row.name, client, row] as const));

describe("members of a vendor return in the next turn, with every digit (R-TXT-3)", () => {
  const expectReturned = (row: Row, { wire, text: sent }: ReturnType<typeof returned>): void => {
    for (const [name, value] of Object.entries(row.message)) {
      if (name !== "tool_calls") {
        expect(wire[name]).toEqual(JSON.parse(json(value)));
        continue;
      }
      // Styles may change the ids.
      const withoutIds = (calls: unknown) =>
        (JSON.parse(json(calls)) as Json[]).map((each) => ({ ...each, id: "" }));
      expect(withoutIds(wire[name])).toEqual(withoutIds(value));
    }
    if (json(row.message).includes("2512292042121000001")) {
      expect(sent).toContain("2512292042121000001");
    }
  };

  it.each(cases)("%s, whole: %s", (_name, client, row) => {
    const end = { finish_reason: "tool_calls" in row.message ? "tool_calls" : "stop" };
    const reply = json(replyOf("chat", { chat: row.message, end }));
    const got = answer({ from: "chat", to: client }, reply);
    expectReturned(row, returned(client, got));
  });

  it.each(cases)("%s, streamed: %s", (_name, client, row) => {
    const end = "tool_calls" in row.message ? "tool_calls" : "stop";
    const chunks = [...row.deltas.map((delta) => chunk(delta)), chunk({}, end)];
    const got = stream({ from: "chat", to: client }, chunks.map(json));
    expectReturned(row, returned(client, got));
  });

  it.each(clients)("a whole message at the end of a stream repeats none of them: %s", (client) => {
    const row = rows[3] as Row;
    const last = {
      object: "chat.completion",
      choices: [{ index: 0, finish_reason: "tool_calls", message: row.message }],
    };
    const got = stream({ from: "chat", to: client }, [
      ...row.deltas.map((delta) => chunk(delta)),
      last,
      "[DONE]",
    ]);
    expectReturned(row, returned(client, got));
  });

  it.each(clients)("reasoning that only reasoning_details have is shown: %s", (client) => {
    const got = stream({ from: "chat", to: client }, [
      chunk({ reasoning_details: [{ ...text, text: "I " }] }),
      chunk({ reasoning_details: [{ ...text, text: "look." }] }),
      chunk({ content: "Hello" }),
      chunk({}, "stop"),
    ]);
    expect(got.text).toContain("look.");
    const { wire } = returned(client, got);
    expect(wire).toMatchObject({ content: "Hello", reasoning_details: [text] });
    expect(wire).not.toHaveProperty("reasoning_content");
  });

  it.each(clients)("other members and empty ones do not return: %s", (client) => {
    const message = {
      content: "Hello",
      reasoning_details: [],
      extra_content: { google: {} },
      provider_specific_fields: { refusal: null },
      annotations: [],
      function_call: null,
      custom_field: "x",
    };
    const got = answer({ from: "chat", to: client }, replyOf("chat", { chat: message }));
    expect(returned(client, got).wire).toEqual({ role: "assistant", content: "Hello" });
  });
});
