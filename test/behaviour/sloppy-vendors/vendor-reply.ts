/**
 * Replies of vendors as their styles document them, whole and streamed: quirks are applied to
 * these.
 */
import { type Call, type Conversation, piecesOf } from "./conversation.ts";

/** A style that vendors speak. */
export type VendorStyle = "chat" | "responses" | "messages" | "gemini";

export const vendorStyles: readonly VendorStyle[] = ["chat", "responses", "messages", "gemini"];

// oxlint-disable-next-line typescript/no-explicit-any -- quirks reach into any reply
export type Json = Record<string, any>;

/** A reply in both forms. */
export interface VendorReply {
  readonly whole: Json;
  /** The data of the events. */
  readonly events: readonly Json[];
}

const { rawJSON } = JSON as unknown as { rawJSON: (json: string) => unknown };

/** Parses JSON with the text of its numbers. */
export function parseExactly(json: string): Json {
  return JSON.parse(json, (_name, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined ? rawJSON(context.source) : value,
  ) as Json;
}

/** A vendor's reply for a conversation. */
export function vendorReply(style: VendorStyle, conversation: Conversation): VendorReply {
  return writers[style](conversation);
}

const model = "vendor-model";

const writers: Readonly<Record<VendorStyle, (of: Conversation) => VendorReply>> = {
  chat(of) {
    const { tokens, calls, text, reasoning, refusal } = of;
    const head = { id: "chatcmpl-b1946ac92492d2347c6235b4", created: 1_700_000_000, model };
    const usage = {
      prompt_tokens: tokens.input,
      completion_tokens: tokens.output,
      total_tokens: tokens.input + tokens.output,
      prompt_tokens_details: { cached_tokens: tokens.cached, cache_write_tokens: tokens.written },
      completion_tokens_details: { reasoning_tokens: tokens.reasoning },
    };
    const called = calls.length > 0 ? "tool_calls" : "stop";
    const finish_reason = of.ending === "limit" ? "length" : called;
    const chunk = (delta: Json, reason: string | null = null): Json => ({
      ...head,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
    });
    const wires = calls.map(chatCall);
    return {
      whole: {
        ...head,
        object: "chat.completion",
        choices: [
          {
            index: 0,
            message: {
              role: "assistant",
              content: text === "" ? null : text,
              ...(refusal !== "" && { refusal }),
              ...(reasoning !== "" && { reasoning_content: reasoning }),
              ...(calls.length > 0 && { tool_calls: wires }),
            },
            logprobs: null,
            finish_reason,
          },
        ],
        usage,
      },
      events: [
        chunk({ role: "assistant", content: "" }),
        ...piecesOf(reasoning, of).map((reasoning_content) => chunk({ reasoning_content })),
        ...piecesOf(text, of).map((content) => chunk({ content })),
        ...piecesOf(refusal, of).map((piece) => chunk({ refusal: piece })),
        ...calls.flatMap((call, index) => [
          chunk({ tool_calls: [{ index, ...chatCall({ ...call, input: "" }) }] }),
          ...piecesOf(call.input, of).map((piece) =>
            chunk({
              tool_calls: [
                call.isCustom
                  ? { index, custom: { input: piece } }
                  : { index, function: { arguments: piece } },
              ],
            }),
          ),
        ]),
        chunk({}, finish_reason),
        { ...head, object: "chat.completion.chunk", choices: [], usage },
      ],
    };
  },

  responses(of) {
    const { tokens, calls, text, reasoning, refusal, ending } = of;
    const items = [
      ...(reasoning === ""
        ? []
        : [
            { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: reasoning }] },
          ]),
      ...(text === ""
        ? []
        : [message("msg_1", { type: "output_text", text, annotations: [], logprobs: [] })]),
      ...(refusal === "" ? [] : [message("msg_2", { type: "refusal", refusal })]),
      ...calls.map(responsesCall),
    ];
    const isCut = ending === "limit";
    const response = {
      id: "resp_b1946ac92492d2347c6235b4",
      object: "response",
      created_at: 1_700_000_000,
      model,
      status: isCut ? "incomplete" : "completed",
      error: null,
      incomplete_details: isCut ? { reason: "max_output_tokens" } : null,
      output: items,
      usage: {
        input_tokens: tokens.input,
        input_tokens_details: {
          cached_tokens: tokens.cached,
          cache_write_tokens: tokens.written,
        },
        output_tokens: tokens.output,
        output_tokens_details: { reasoning_tokens: tokens.reasoning },
        total_tokens: tokens.input + tokens.output,
      },
    };
    const begun = {
      ...response,
      status: "in_progress",
      incomplete_details: null,
      output: [],
      usage: null,
    };
    const events = [
      { type: "response.created", response: begun },
      { type: "response.in_progress", response: begun },
      ...items.flatMap((item, output_index) => itemEvents(item, output_index, of)),
      { type: `response.${response.status}`, response },
    ];
    return {
      whole: response,
      events: events.map((event, sequence_number) => ({ ...event, sequence_number })),
    };
  },

  messages(of) {
    const { tokens, calls, text, reasoning, ending } = of;
    const usage = {
      input_tokens: tokens.input - tokens.cached - tokens.written,
      cache_creation_input_tokens: tokens.written,
      cache_read_input_tokens: tokens.cached,
      output_tokens: tokens.output,
      ...(tokens.reasoning > 0 && {
        output_tokens_details: { thinking_tokens: tokens.reasoning },
      }),
    };
    const called = calls.length > 0 ? "tool_use" : "end_turn";
    const end = { stop_reason: ending === "limit" ? "max_tokens" : called, stop_sequence: null };
    const blocks: Json[] = [
      ...(reasoning === "" ? [] : [{ type: "thinking", thinking: reasoning, signature: "c2ln" }]),
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...calls.map(({ id, name, ...call }) => ({
        type: "tool_use",
        id,
        name,
        input: parseExactly(functionInput(call)),
      })),
    ];
    const head = { id: "msg_b1946ac92492d2347c6235b4", type: "message", role: "assistant", model };
    return {
      whole: { ...head, content: blocks, ...end, usage },
      events: [
        {
          type: "message_start",
          message: {
            ...head,
            content: [],
            stop_reason: null,
            stop_sequence: null,
            usage: { ...usage, output_tokens: 1, output_tokens_details: undefined },
          },
        },
        ...blocks.flatMap((block, index) => blockEvents(block, index, of)),
        { type: "message_delta", delta: end, usage },
        { type: "message_stop" },
      ],
    };
  },

  gemini(of) {
    const { tokens, calls, text, reasoning, ending } = of;
    const usageMetadata = {
      promptTokenCount: tokens.input,
      cachedContentTokenCount: tokens.cached,
      candidatesTokenCount: tokens.output - tokens.reasoning,
      thoughtsTokenCount: tokens.reasoning,
      totalTokenCount: tokens.input + tokens.output,
    };
    const head = { modelVersion: model, responseId: "b1946ac92492d2347c6235b4" };
    const finishReason = ending === "limit" ? "MAX_TOKENS" : "STOP";
    const partsOf = (thoughts: readonly string[], texts: readonly string[]): Json[] => [
      ...thoughts.map((each) => ({ text: each, thought: true })),
      ...texts.map((each) => ({ text: each })),
      ...calls.map(({ id, name, ...call }) => ({
        functionCall: { id, name, args: parseExactly(functionInput(call)) },
      })),
    ];
    const candidate = (parts: readonly Json[], more: Json = {}): Json => ({
      content: { role: "model", parts },
      index: 0,
      ...more,
    });
    const whole = partsOf(reasoning === "" ? [] : [reasoning], text === "" ? [] : [text]);
    return {
      whole: { candidates: [candidate(whole, { finishReason })], usageMetadata, ...head },
      events: [
        ...partsOf(piecesOf(reasoning, of), piecesOf(text, of)).map((part) => ({
          candidates: [candidate([part])],
          ...head,
        })),
        { candidates: [candidate([{ text: "" }], { finishReason })], usageMetadata, ...head },
      ],
    };
  },
};

/** The arguments of a call at a vendor that has no custom tools: their text is a member. */
function functionInput({ input, isCustom }: Pick<Call, "input" | "isCustom">): string {
  return isCustom ? JSON.stringify({ input }) : input;
}

function chatCall({ id, name, input, isCustom }: Call): Json {
  return isCustom
    ? { id, type: "custom", custom: { name, input } }
    : { id, type: "function", function: { name, arguments: input } };
}

function message(id: string, content: Json): Json {
  return { type: "message", id, status: "completed", role: "assistant", content: [content] };
}

function responsesCall({ id, name, input, isCustom }: Call, place: number): Json {
  const head = { status: "completed", call_id: id, name };
  return isCustom
    ? { type: "custom_tool_call", id: `ctc_${place}`, ...head, input }
    : { type: "function_call", id: `fc_${place}`, ...head, arguments: input };
}

function itemEvents(item: Json, output_index: number, of: Conversation): Json[] {
  const place = { item_id: item["id"], output_index };
  const added = (begun: Json): Json => ({
    type: "response.output_item.added",
    output_index,
    item: { ...begun, ...("status" in begun && { status: "in_progress" }) },
  });
  const done = { type: "response.output_item.done", output_index, item };
  const deltas = (type: string, text: string, more: Json = {}): Json[] =>
    piecesOf(text, of).map((delta) => ({ type: `response.${type}`, ...place, ...more, delta }));
  switch (item["type"]) {
    case "reasoning": {
      const { text } = item["summary"][0];
      const at = { ...place, summary_index: 0 };
      const part = { type: "summary_text", text };
      return [
        added({ ...item, summary: [] }),
        { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } },
        ...deltas("reasoning_summary_text.delta", text, { summary_index: 0 }),
        { type: "response.reasoning_summary_text.done", ...at, text },
        { type: "response.reasoning_summary_part.done", ...at, part },
        done,
      ];
    }
    case "message": {
      const [part] = item["content"];
      const kind = part.type === "refusal" ? "refusal" : "output_text";
      const member = part.type === "refusal" ? "refusal" : "text";
      const at = { ...place, content_index: 0 };
      const empty = { ...part, [member]: "" };
      return [
        added({ ...item, content: [] }),
        { type: "response.content_part.added", ...at, part: empty },
        ...deltas(`${kind}.delta`, part[member], { content_index: 0 }),
        { type: `response.${kind}.done`, ...at, [member]: part[member] },
        { type: "response.content_part.done", ...at, part },
        done,
      ];
    }
    default: {
      const member = item["type"] === "function_call" ? "arguments" : "input";
      const kind = member === "arguments" ? "function_call_arguments" : "custom_tool_call_input";
      return [
        added({ ...item, [member]: "" }),
        ...deltas(`${kind}.delta`, item[member]),
        { type: `response.${kind}.done`, ...place, [member]: item[member] },
        done,
      ];
    }
  }
}

function blockEvents(block: Json, index: number, of: Conversation): Json[] {
  const start = (content_block: Json): Json => ({
    type: "content_block_start",
    index,
    content_block,
  });
  const delta = (each: Json): Json => ({ type: "content_block_delta", index, delta: each });
  const stop = { type: "content_block_stop", index };
  switch (block["type"]) {
    case "thinking":
      return [
        start({ ...block, thinking: "", signature: "" }),
        ...piecesOf(block["thinking"], of).map((thinking) =>
          delta({ type: "thinking_delta", thinking }),
        ),
        delta({ type: "signature_delta", signature: block["signature"] }),
        stop,
      ];
    case "text":
      return [
        start({ ...block, text: "" }),
        ...piecesOf(block["text"], of).map((text) => delta({ type: "text_delta", text })),
        stop,
      ];
    default:
      return [
        start({ ...block, input: {} }),
        ...["", ...piecesOf(JSON.stringify(block["input"]), of)].map((partial_json) =>
          delta({ type: "input_json_delta", partial_json }),
        ),
        stop,
      ];
  }
}

/** Writes events as a stream: with their names, and with the style's end mark. */
export function writeEvents(style: VendorStyle, events: readonly Json[]): string {
  const hasNames = style === "responses" || style === "messages";
  const frames = events.map((event) => {
    const name = hasNames && typeof event["type"] === "string" ? `event: ${event["type"]}\n` : "";
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  return frames.join("") + (style === "chat" ? "data: [DONE]\n\n" : "");
}
