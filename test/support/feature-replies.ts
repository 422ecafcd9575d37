/** Replies of vendors that ran tools or made audio, in each style. */

/** Usage as a vendor reports it. */
export interface Reported {
  readonly searches: number;
  readonly fetches: number;
  readonly runs: number;
  /** Searches of files. Default 0. */
  readonly filed?: number;
  readonly heard: number;
  readonly spoken: number;
  /** Tokens of text, read and produced. */
  readonly read: number;
  readonly produced: number;
}

/** A reply of text only. */
export const noFeatures: Reported = {
  searches: 0,
  fetches: 0,
  runs: 0,
  heard: 0,
  spoken: 0,
  read: 100,
  produced: 20,
};

/** The styles of vendors. */
export type ReplyStyle = "messages" | "responses" | "chat" | "gemini";

const text = "Hello";

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function events(list: readonly object[]): string {
  return list
    .map((event) => {
      const type = "type" in event ? `event: ${String(event.type)}\n` : "";
      return `${type}data: ${JSON.stringify(event)}\n\n`;
    })
    .join("");
}

/** A vendor's reply in each style, whole and streamed. */
export const featureReplies: Record<
  ReplyStyle,
  (reported: Reported) => { whole: object; stream: string }
> = {
  messages({ searches, fetches, runs, read, produced }) {
    const usage = {
      input_tokens: read,
      output_tokens: produced,
      server_tool_use: { web_search_requests: searches, web_fetch_requests: fetches },
    };
    const content = [
      ...times(runs, (index) => ({
        type: "server_tool_use",
        id: `srvtoolu_${index}`,
        name: index % 2 === 0 ? "code_execution" : "bash_code_execution",
        input: {},
      })),
      { type: "text", text },
    ];
    const message = { id: "msg_1", type: "message", role: "assistant", model: "m" };
    const blocks = content.flatMap((block, index) => [
      {
        type: "content_block_start",
        index,
        content_block: "text" in block ? { type: "text", text: "" } : block,
      },
      ...("text" in block
        ? [{ type: "content_block_delta", index, delta: { type: "text_delta", text } }]
        : []),
      { type: "content_block_stop", index },
    ]);
    const begun = { ...message, content: [], usage: { ...usage, server_tool_use: null } };
    return {
      whole: { ...message, content, stop_reason: "end_turn", stop_sequence: null, usage },
      stream: events([
        { type: "message_start", message: { ...begun, stop_reason: null } },
        ...blocks,
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage },
        { type: "message_stop" },
      ]),
    };
  },

  responses({ searches, runs, filed = 0, read, produced }) {
    const output = [
      ...times(searches, (index) => ({
        type: "web_search_call",
        id: `ws_${index}`,
        status: "completed",
        action: { type: "search", query: "q" },
      })),
      // Reading a page that was found costs nothing.
      { type: "web_search_call", id: "ws_o", status: "completed", action: { type: "open_page" } },
      ...times(runs, (index) => ({
        type: "code_interpreter_call",
        id: `ci_${index}`,
        status: "completed",
        code: "1",
        container_id: "cntr_1",
        outputs: null,
      })),
      ...times(filed, (index) => ({
        type: "file_search_call",
        id: `fs_${index}`,
        status: "completed",
        queries: ["q"],
        results: null,
      })),
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text, annotations: [] }],
      },
    ];
    const usage = { input_tokens: read, output_tokens: produced, total_tokens: read + produced };
    const response = { id: "resp_1", object: "response", model: "m", status: "completed", output };
    const done = { ...response, usage };
    const items = output.flatMap((item, index) => [
      { type: "response.output_item.added", output_index: index, item },
      { type: "response.output_item.done", output_index: index, item },
    ]);
    const created = { ...response, status: "in_progress", output: [], usage: null };
    return {
      whole: done,
      stream: events([
        { type: "response.created", response: created },
        ...items,
        { type: "response.completed", response: done },
      ]),
    };
  },

  chat({ searches, heard, spoken, read, produced }) {
    const usage = {
      prompt_tokens: read + heard,
      completion_tokens: produced + spoken,
      total_tokens: read + heard + produced + spoken,
      prompt_tokens_details: { audio_tokens: heard },
      completion_tokens_details: { audio_tokens: spoken },
      ...(searches > 0 && { server_tool_use: { web_search_requests: searches } }),
    };
    const head = { id: "chatcmpl-1", created: 1, model: "m" };
    const choice = { index: 0, finish_reason: "stop" };
    const chunk = { ...head, object: "chat.completion.chunk" };
    const message = { role: "assistant", content: text };
    return {
      whole: { ...head, object: "chat.completion", choices: [{ ...choice, message }], usage },
      stream: `${events([
        { ...chunk, choices: [{ index: 0, delta: { role: "assistant", content: text } }] },
        { ...chunk, choices: [{ ...choice, delta: {} }] },
        { ...chunk, choices: [], usage },
      ])}data: [DONE]\n\n`,
    };
  },

  gemini({ searches, fetches, runs, heard, spoken, read, produced }) {
    const detail = (tokenCount: number) => [{ modality: "AUDIO", tokenCount }];
    const reply = {
      responseId: "r1",
      modelVersion: "m",
      candidates: [
        {
          content: {
            role: "model",
            parts: [
              ...times(runs, () => ({ executableCode: { language: "PYTHON", code: "1" } })),
              { text },
            ],
          },
          finishReason: "STOP",
          groundingMetadata: { webSearchQueries: times(searches, (index) => `q${index}`) },
          urlContextMetadata: {
            urlMetadata: times(fetches, (index) => ({ retrievedUrl: `https://a.b/${index}` })),
          },
        },
      ],
      usageMetadata: {
        promptTokenCount: read + heard,
        candidatesTokenCount: produced + spoken,
        promptTokensDetails: detail(heard),
        candidatesTokensDetails: detail(spoken),
      },
    };
    return { whole: reply, stream: events([reply]) };
  },
};
