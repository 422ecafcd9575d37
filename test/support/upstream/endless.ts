/**
 * Replies without an end, in every style that vendors speak: only the gateway's leaving ends them.
 */
import type { Behaviour } from "./exchange.ts";
import { dataFrame, namedFrame } from "./strict.ts";

/** Style of the stream. */
export type EndlessStyle = "chat" | "responses" | "messages" | "gemini";

/** The endless part: a text, the input of a call, or reasoning. */
export type EndlessKind = "text" | "call" | "think";

/** Prefix of an endless input: clients parse its received part. */
export const endlessInput = '{"city":"';

/** Each piece of it: 8 bytes, in which JSON escapes nothing. */
export const endlessPiece = "go on :)";

/** Streams it until the gateway leaves, or until so many pieces are out: it then waits for that. */
export function endless(style: EndlessStyle, kind: EndlessKind, piecesMax = Infinity): Behaviour {
  return async (exchange) => {
    const type = { "content-type": "text/event-stream; charset=utf-8" };
    exchange.response.writeHead(200, type);
    const { begin, piece } = frames[style](kind);
    let isThere = await exchange.write(Buffer.from(begin.join("")));
    for (let count = 0; isThere && count < piecesMax; count++) {
      isThere = await exchange.write(Buffer.from(piece(count)));
    }
  };
}

interface Frames {
  readonly begin: readonly string[];
  /** The frame of the piece with this number, from 0. */
  readonly piece: (count: number) => string;
}

const id = "0123456789abcdef01234567";

const frames: Readonly<Record<EndlessStyle, (kind: EndlessKind) => Frames>> = {
  chat(kind) {
    const chunk = (delta: object): string =>
      dataFrame({
        id: `chatcmpl-${id}`,
        object: "chat.completion.chunk",
        created: 1_760_000_000,
        model: "vendor-model-2026-01-01",
        choices: [{ index: 0, delta, finish_reason: null }],
      });
    const call = { index: 0, id: "call_1", type: "function" };
    const begun = { function: { name: "get_weather", arguments: "" } };
    const begin = [chunk({ role: "assistant", content: "" })];
    if (kind === "call") begin.push(chunk({ tool_calls: [{ ...call, ...begun }] }));
    const input = (text: string) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] });
    if (kind === "call") begin.push(chunk(input(endlessInput)));
    const deltas = {
      text: { content: endlessPiece },
      call: input(endlessPiece),
      think: { reasoning_content: endlessPiece },
    };
    return { begin, piece: () => chunk(deltas[kind]) };
  },

  messages(kind) {
    const blocks = {
      text: { type: "text", text: "" },
      call: { type: "tool_use", id: "toolu_1", name: "get_weather", input: {} },
      think: { type: "thinking", thinking: "", signature: "" },
    };
    const deltas = {
      text: { type: "text_delta", text: endlessPiece },
      call: { type: "input_json_delta", partial_json: endlessPiece },
      think: { type: "thinking_delta", thinking: endlessPiece },
    };
    const message = {
      id: `msg_${id}`,
      type: "message",
      role: "assistant",
      model: "vendor-model-2026-01-01",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 12, output_tokens: 1 },
    };
    const piece = { type: "content_block_delta", index: 0, delta: deltas[kind] };
    const input = { ...piece, delta: { ...deltas.call, partial_json: endlessInput } };
    return {
      begin: [
        namedFrame({ type: "message_start", message }),
        namedFrame({ type: "content_block_start", index: 0, content_block: blocks[kind] }),
        ...(kind === "call" ? [namedFrame(input)] : []),
      ],
      piece: () => namedFrame(piece),
    };
  },

  responses(kind) {
    const items = {
      text: { type: "message", id: `msg_${id}`, status: "in_progress", role: "assistant" },
      call: { type: "function_call", id: `fc_${id}`, status: "in_progress", call_id: "call_1" },
      think: { type: "reasoning", id: `rs_${id}`, summary: [] },
    };
    const begun = {
      text: { content: [] },
      call: { name: "get_weather", arguments: "" },
      think: {},
    };
    const item = { ...items[kind], ...begun[kind] };
    const place = { item_id: item.id, output_index: 0 };
    const text = { type: "output_text", text: "", annotations: [], logprobs: [] };
    const input = { type: "response.function_call_arguments.delta", ...place };
    const parts = {
      text: [{ type: "response.content_part.added", ...place, content_index: 0, part: text }],
      call: [{ ...input, delta: endlessInput }],
      think: [
        {
          type: "response.reasoning_summary_part.added",
          ...place,
          summary_index: 0,
          part: { type: "summary_text", text: "" },
        },
      ],
    };
    const deltas = {
      text: { type: "response.output_text.delta", ...place, content_index: 0, logprobs: [] },
      call: input,
      think: { type: "response.reasoning_summary_text.delta", ...place, summary_index: 0 },
    };
    const response = {
      id: `resp_${id}`,
      object: "response",
      created_at: 1_760_000_000,
      status: "in_progress",
      model: "vendor-model-2026-01-01",
      output: [],
      usage: null,
    };
    const events = [
      { type: "response.created", response },
      { type: "response.in_progress", response },
      { type: "response.output_item.added", output_index: 0, item },
      ...parts[kind],
    ];
    const frame = (event: object, at: number): string =>
      namedFrame({ ...event, sequence_number: at });
    return {
      begin: events.map(frame),
      piece: (count) => frame({ ...deltas[kind], delta: endlessPiece }, events.length + count),
    };
  },

  gemini(kind) {
    if (kind === "call") throw new Error("this style tells calls whole");
    const part = { text: endlessPiece, ...(kind === "think" && { thought: true }) };
    const chunk = {
      candidates: [{ content: { parts: [part], role: "model" }, index: 0 }],
      modelVersion: "vendor-model-001",
      responseId: id,
    };
    return { begin: [], piece: () => dataFrame(chunk) };
  },
};
