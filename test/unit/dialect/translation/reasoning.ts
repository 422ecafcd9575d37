/**
 * Replies with reasoning that led to calls, and how a client sends them back: for round trips
 * (R-TXT-3).
 */
import {
  answer,
  answerStreamed,
  type Caller,
  type Got,
  type Json,
  type Sent,
  stream,
  type Vendor,
  type WayBack,
} from "./translation.ts";
import { replyOf } from "./replies.ts";

/** Bytes that no JSON writer, no form of base64 and no trimming leaves alone by accident. */
const text = ' Hm…\n\n"so" \\u0041 é\u{1F914}\t';
const bytes = "EqQBCkYIBBgCKkA+/w==";

/** Reasoning and calls of each vendor, as in its reply; they must return unchanged. */
export const thought: Readonly<Record<Vendor, readonly Json[]>> = {
  messages: [
    { type: "thinking", thinking: text, signature: bytes },
    { type: "redacted_thinking", data: `${bytes}redacted` },
    { type: "tool_use", id: "toolu_a", name: "f", input: { x: 1 } },
    { type: "tool_use", id: "toolu_b", name: "f", input: {} },
  ],
  responses: [
    {
      type: "reasoning",
      id: "rs_1",
      summary: [
        { type: "summary_text", text },
        { type: "summary_text", text: "Then." },
      ],
      encrypted_content: `gAAAA${bytes}`,
    },
    { type: "function_call", id: "fc_1", call_id: "call_a", name: "f", arguments: '{"x":1}' },
    { type: "reasoning", id: "rs_2", summary: [], encrypted_content: `gAAAB${bytes}` },
    { type: "function_call", id: "fc_2", call_id: "call_b", name: "f", arguments: "{}" },
  ],
  gemini: [
    { text, thought: true },
    { functionCall: { id: "a", name: "f", args: { x: 1 } }, thoughtSignature: bytes },
    { functionCall: { id: "b", name: "f", args: {} } },
  ],
  chat: [
    {
      role: "assistant",
      content: null,
      reasoning_content: text,
      tool_calls: [
        { id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } },
        { id: "b", type: "function", function: { name: "f", arguments: "{}" } },
      ],
    },
  ],
};

const ends: Readonly<Record<Vendor, Json>> = {
  messages: { stop_reason: "tool_use" },
  responses: {},
  gemini: { finishReason: "STOP" },
  chat: { finish_reason: "tool_calls" },
};

/** The whole reply. */
export function thoughtReply(vendor: Vendor): Json {
  const [message] = thought.chat;
  const { messages, responses, gemini } = thought;
  return replyOf(vendor, { chat: message ?? {}, messages, responses, gemini, end: ends[vendor] });
}

/** The same in a stream of messages or of Gemini, the text in pieces. */
function thoughtStream(vendor: "messages" | "gemini"): readonly unknown[] {
  if (vendor === "gemini") {
    return [
      {
        responseId: "r1",
        candidates: [{ content: { parts: [{ text: text.slice(0, 3), thought: true }] } }],
      },
      { candidates: [{ content: { parts: [{ text: text.slice(3), thought: true }] } }] },
      { candidates: [{ content: { parts: thought.gemini.slice(1) }, finishReason: "STOP" }] },
    ];
  }
  const blocks = thought.messages.flatMap((block, index) => [
    { type: "content_block_start", index, content_block: begun(block) },
    ...deltasOf(block).map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ]);
  return [
    { type: "message_start", message: { id: "msg_1", usage: { input_tokens: 1 } } },
    ...blocks,
    { type: "message_delta", delta: ends.messages, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ];
}

function begun(block: Json): Json {
  if (block["type"] === "thinking") return { type: "thinking", thinking: "", signature: "" };
  return block["type"] === "tool_use" ? { ...block, input: {} } : block;
}

function deltasOf({ type, signature, input }: Json): readonly Json[] {
  if (type === "tool_use")
    return [{ type: "input_json_delta", partial_json: JSON.stringify(input) }];
  if (type !== "thinking") return [];
  return [
    { type: "thinking_delta", thinking: text.slice(0, 3) },
    { type: "thinking_delta", thinking: text.slice(3) },
    { type: "signature_delta", signature },
  ];
}

/** All forms in which a client gets the reply. */
export function forms(way: WayBack): readonly (readonly [string, () => Got])[] {
  const reply = thoughtReply(way.from);
  const streamed = way.from === "messages" || way.from === "gemini" ? way.from : undefined;
  return [
    ["whole", () => answer(way, reply)],
    ["whole, as a stream", () => answerStreamed(way, reply)],
    ...(streamed === undefined
      ? []
      : [["streamed", () => stream(way, thoughtStream(streamed))] as const]),
  ];
}

/** The turn of the model, as a client of the style sends it back: members of its next request. */
export function nextRequest(style: Exclude<Caller, "chat">, got: Got): Json {
  const question = { role: "user", content: "q" };
  if (style === "responses") {
    const { output } = got.body ?? got.events.at(-1).response;
    const results = output
      .filter(({ type }: Json) => type === "function_call")
      .map(({ call_id }: Json) => ({ type: "function_call_output", call_id, output: "1" }));
    return { input: [question, ...output, ...results] };
  }
  const content = got.body?.content ?? assembled(got.events);
  const results = content
    .filter(({ type }: Json) => type === "tool_use")
    .map(({ id }: Json) => ({ type: "tool_result", tool_use_id: id, content: "1" }));
  return {
    messages: [question, { role: "assistant", content }, { role: "user", content: results }],
  };
}

/** The blocks of a stream, put together as Anthropic's SDK does. */
// oxlint-disable-next-line typescript/no-explicit-any -- parsed JSON
function assembled(events: readonly any[]): Json[] {
  // oxlint-disable-next-line typescript/no-explicit-any -- parsed JSON
  const blocks: any[] = [];
  for (const { type, index, content_block, delta } of events) {
    if (type === "content_block_start") blocks[index] = { ...content_block, json: "" };
    if (type !== "content_block_delta") continue;
    const block = blocks[index];
    if (delta.type === "thinking_delta") block.thinking += delta.thinking;
    // It replaces, rather than appends.
    if (delta.type === "signature_delta") block.signature = delta.signature;
    if (delta.type === "input_json_delta") block.json += delta.partial_json;
  }
  return blocks.map(({ json, ...block }) =>
    json === "" ? block : { ...block, input: JSON.parse(json) },
  );
}

/** Returns the reasoning and calls that the vendor gets back. */
export function cameBack(vendor: Vendor, { body }: Sent): unknown {
  return {
    messages: () => body.messages[1].content,
    responses: () => body.input.slice(1, 1 + thought.responses.length),
    gemini: () => body.contents[1].parts,
    chat: () => [body.messages[1]],
  }[vendor]();
}

/**
 * Returns the reasoning and calls that must come back. Other styles have no member for item IDs,
 * except for reasoning.
 */
export function expected(vendor: Vendor): unknown {
  if (vendor !== "responses") return thought[vendor];
  return thought.responses.map(({ id, ...item }) =>
    item["type"] === "function_call" ? item : { id, ...item },
  );
}
