/** Replies of one text in every style, with whatever usage and members a test gives them. */
export type ReplyStyle = "chat" | "responses" | "messages" | "gemini";

/** Facts of a reply other than its text. */
export interface ReplyFacts {
  readonly text: string;
  /** The usage, as the style writes it. */
  readonly usage: object;
  /** Further members of the reply: of each chunk, of the response. */
  readonly members?: object;
  /** Items or blocks before the text, as the style writes them. */
  readonly items?: readonly object[];
}

interface WrittenReply {
  readonly whole: object;
  readonly events: readonly object[];
}

const writers: Record<ReplyStyle, (facts: ReplyFacts) => WrittenReply> = {
  chat({ text, usage, members }) {
    const head = { id: "chatcmpl-1", created: 1, model: "m", ...members };
    const chunk = { ...head, object: "chat.completion.chunk" };
    const message = { role: "assistant", content: text };
    const delta = { index: 0, delta: message, finish_reason: null };
    return {
      whole: {
        ...{ ...head, object: "chat.completion" },
        choices: [{ index: 0, finish_reason: "stop", message }],
        usage,
      },
      events: [
        { ...chunk, choices: [delta] },
        { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
        { ...chunk, choices: [], usage },
      ],
    };
  },
  responses({ text, usage, members, items = [] }) {
    const item = { type: "message", id: "msg_1", role: "assistant", status: "completed" };
    const content = [{ type: "output_text", text, annotations: [] }];
    const response = { id: "resp_1", object: "response", created_at: 1, model: "m" };
    const output = [...items, { ...item, content }];
    const done = { ...response, status: "completed", output, usage, ...members };
    const place = { item_id: "msg_1", output_index: items.length, content_index: 0 };
    const part = { type: "output_text", text: "", annotations: [] };
    return {
      whole: done,
      events: [
        {
          type: "response.created",
          response: { ...response, status: "in_progress", output: [], service_tier: "auto" },
        },
        ...items.flatMap((each, output_index) => [
          { type: "response.output_item.added", output_index, item: each },
          { type: "response.output_item.done", output_index, item: each },
        ]),
        {
          type: "response.output_item.added",
          output_index: items.length,
          item: { ...item, content: [] },
        },
        { type: "response.content_part.added", ...place, part },
        { type: "response.output_text.delta", ...place, delta: text },
        {
          type: "response.output_item.done",
          output_index: items.length,
          item: { ...item, content },
        },
        { type: "response.completed", response: done },
      ],
    };
  },
  messages({ text, usage, members, items = [] }) {
    const message = { id: "msg_1", type: "message", role: "assistant", model: "m", ...members };
    const end = { stop_reason: "end_turn", stop_sequence: null };
    const index = items.length;
    return {
      whole: { ...message, content: [...items, { type: "text", text }], ...end, usage },
      events: [
        { type: "message_start", message: { ...message, content: [], stop_reason: null, usage } },
        ...items.flatMap((content_block, at) => [
          { type: "content_block_start", index: at, content_block },
          { type: "content_block_stop", index: at },
        ]),
        { type: "content_block_start", index, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index, delta: { type: "text_delta", text } },
        { type: "content_block_stop", index },
        { type: "message_delta", delta: end, usage },
        { type: "message_stop" },
      ],
    };
  },
  gemini({ text, usage, members, items = [] }) {
    const parts = [...items, { text }];
    const candidate = { index: 0, content: { role: "model", parts }, ...members };
    const whole = { candidates: [{ ...candidate, finishReason: "STOP" }], usageMetadata: usage };
    return { whole, events: [whole] };
  },
};

/** A reply as a body, and the headers that say what it is. */
export function textReply(style: ReplyStyle, facts: ReplyFacts, isStream: boolean) {
  const { whole, events } = writers[style](facts);
  if (!isStream) return { body: JSON.stringify(whole) };
  const frames = events.map((event) => {
    const type = "type" in event ? `event: ${String(event.type)}\n` : "";
    return `${type}data: ${JSON.stringify(event)}\n\n`;
  });
  const headers = { "content-type": "text/event-stream" };
  return { headers, body: frames.join("") + (style === "chat" ? "data: [DONE]\n\n" : "") };
}

/** Whether a request is for a stream. */
export function asksForStream({ url, body }: { readonly url: string; readonly body: string }) {
  return url.includes("streamGenerateContent") || body.includes('"stream":true');
}
