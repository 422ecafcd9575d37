/** Replies of vendors in each style, whole and streamed, around what a test is about. */
import type { Json, Vendor } from "./translation.ts";

/** The content of a reply: what stands where the style has it. */
export interface Content {
  /** chat: members of the message; messages: blocks; responses: items; gemini: parts. */
  readonly chat?: Json;
  readonly messages?: readonly Json[];
  readonly responses?: readonly Json[];
  readonly gemini?: readonly Json[];
  /** Members of the reply, or of chat's and gemini's choice. */
  readonly end?: Json;
  readonly usage?: Json;
}

const writers: Readonly<Record<Vendor, (content: Content) => Json>> = {
  chat: ({ chat, end, usage }) => ({
    id: "chatcmpl-1",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: null, ...chat },
        finish_reason: "stop",
        ...end,
      },
    ],
    ...(usage && { usage }),
  }),
  messages: ({ messages = [], end, usage }) => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    content: messages,
    stop_reason: "end_turn",
    ...end,
    usage: usage ?? { input_tokens: 1, output_tokens: 1 },
  }),
  responses: ({ responses = [], end, usage }) => ({
    id: "resp_1",
    object: "response",
    status: "completed",
    output: responses,
    ...end,
    ...(usage && { usage }),
  }),
  gemini: ({ gemini = [], end, usage }) => ({
    responseId: "r1",
    candidates: [{ content: { role: "model", parts: gemini }, finishReason: "STOP", ...end }],
    ...(usage && { usageMetadata: usage }),
  }),
};

/** A whole reply of a vendor. */
export function replyOf(vendor: Vendor, content: Content): Json {
  return writers[vendor](content);
}

/** A responses message of one text. */
export function said(text: string): Json {
  const content = [{ type: "output_text", text, annotations: [] }];
  return { type: "message", id: "msg_1", role: "assistant", status: "completed", content };
}

/** One chunk of a chat stream. */
export function chunk(delta: Json, finish_reason: string | null = null): Json {
  return { id: "chatcmpl-1", created: 5, choices: [{ index: 0, delta, finish_reason }] };
}

/** Streams that say `hi` and end well. */
export const hiStreams: Readonly<Record<Vendor, readonly unknown[]>> = {
  chat: [chunk({ role: "assistant", content: "hi" }), chunk({}, "stop"), "[DONE]"],
  messages: [
    {
      type: "message_start",
      message: { id: "msg_1", content: [], usage: { input_tokens: 3, output_tokens: 0 } },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } },
    { type: "content_block_stop", index: 0 },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 1 },
    },
    { type: "message_stop" },
  ],
  responses: [
    { type: "response.created", response: { id: "resp_1", created_at: 5 } },
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { type: "message", id: "msg_1", content: [] },
    },
    {
      type: "response.content_part.added",
      output_index: 0,
      content_index: 0,
      item_id: "msg_1",
      part: { type: "output_text", text: "" },
    },
    {
      type: "response.output_text.delta",
      output_index: 0,
      content_index: 0,
      item_id: "msg_1",
      delta: "hi",
    },
    { type: "response.output_item.done", output_index: 0, item: said("hi") },
    {
      type: "response.completed",
      response: { id: "resp_1", status: "completed", output: [said("hi")] },
    },
  ],
  gemini: [
    {
      responseId: "r1",
      candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason: "STOP" }],
    },
  ],
};
