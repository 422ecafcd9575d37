/** The three wire styles as the bench speaks them: what the load asks, and what the vendor streams. */

export type StyleName = "chat" | "responses" | "messages";

/** The same, and Gemini's own form. */
export type LoadStyleName = StyleName | "gemini";

/** One wire style. */
export interface Style {
  /** Where clients ask. */
  readonly path: string;
  /** How the address ends at which vendors are asked. */
  readonly vendorPath: string;
  /** The body of a request for a stream. */
  request(model: string, content: string): unknown;
  /** What a stream begins with. */
  readonly opening: string;
  /** An event whose text is `text`. @param tokens how many were made so far, where events tell. Default: some */
  delta(text: string, tokens?: number): string;
  /** What a stream ends with. */
  readonly closing: string;
  /** What stands before the text of a delta. */
  readonly mark: string;
  /** What a whole stream has near its end. */
  readonly terminal: string;
}

/** The limit of every stream. More than the gateway estimates for 2,000 texts of 16 bytes: a stream within its limit is held
 * for once, one beyond it grows its hold again and again. */
const maxTokens = 10_000;

const created = 1_760_000_000;
const model = "vendor-flood";

function chatEvent(delta: unknown, rest: Record<string, unknown> = {}): string {
  const chunk = {
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created,
    model,
    service_tier: "default",
    system_fingerprint: "fp_bench",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null }],
    usage: null,
    ...rest,
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

const finish = { choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }] };
const chatUsage = { prompt_tokens: 250, completion_tokens: 2000, total_tokens: 2250 };

const chat: Style = {
  path: "/v1/chat/completions",
  vendorPath: "/chat/completions",
  request: (name, content) => ({
    model: name,
    stream: true,
    max_tokens: maxTokens,
    messages: [{ role: "user", content }],
  }),
  opening: chatEvent({ role: "assistant", content: "" }),
  delta: (content) => chatEvent({ content }),
  closing: `${chatEvent({}, finish)}${chatEvent({}, { choices: [], usage: chatUsage })}data: [DONE]\n\n`,
  mark: '"content":"',
  terminal: "data: [DONE]",
};

function typed(type: string, rest: Record<string, unknown>): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
}

const response = {
  id: "resp_bench",
  object: "response",
  created_at: created,
  model,
  error: null,
  incomplete_details: null,
};
const item = { id: "msg_bench", type: "message", role: "assistant" };
const itemPlace = { item_id: "msg_bench", output_index: 0 };
const textPart = { type: "output_text", text: "", annotations: [], logprobs: [] };

const responses: Style = {
  path: "/v1/responses",
  vendorPath: "/responses",
  request: (name, content) => ({
    model: name,
    stream: true,
    max_output_tokens: maxTokens,
    input: content,
  }),
  opening:
    typed("response.created", {
      sequence_number: 0,
      response: { ...response, status: "in_progress", output: [], usage: null },
    }) +
    typed("response.output_item.added", {
      sequence_number: 1,
      output_index: 0,
      item: { ...item, status: "in_progress", content: [] },
    }) +
    typed("response.content_part.added", {
      sequence_number: 2,
      ...itemPlace,
      content_index: 0,
      part: textPart,
    }),
  delta: (delta) =>
    typed("response.output_text.delta", {
      sequence_number: 3,
      ...itemPlace,
      content_index: 0,
      delta,
      logprobs: [],
      obfuscation: "wqXcVbAkqE",
    }),
  closing:
    typed("response.output_item.done", {
      sequence_number: 4,
      output_index: 0,
      item: { ...item, status: "completed", content: [textPart] },
    }) +
    typed("response.completed", {
      sequence_number: 5,
      response: {
        ...response,
        status: "completed",
        output: [{ ...item, status: "completed", content: [textPart] }],
        usage: {
          input_tokens: 250,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: 2000,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 2250,
        },
      },
    }),
  mark: '"delta":"',
  terminal: "response.completed",
};

const messages: Style = {
  path: "/v1/messages",
  vendorPath: "/messages",
  request: (name, content) => ({
    model: name,
    stream: true,
    max_tokens: maxTokens,
    messages: [{ role: "user", content }],
  }),
  opening:
    typed("message_start", {
      message: {
        id: "msg_bench",
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 250, output_tokens: 1 },
      },
    }) + typed("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  delta: (text) => typed("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  closing:
    typed("content_block_stop", { index: 0 }) +
    typed("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 2000 },
    }) +
    typed("message_stop", {}),
  mark: '"text":"',
  terminal: "message_stop",
};

function candidate(text: string, tokens = 2_000, rest: Record<string, unknown> = {}): string {
  const content = { parts: [{ text }], role: "model" };
  const counts = {
    promptTokenCount: 250,
    candidatesTokenCount: tokens,
    totalTokenCount: 250 + tokens,
    promptTokensDetails: [{ modality: "TEXT", tokenCount: 250 }],
  };
  const chunk = {
    candidates: [{ content, index: 0, ...rest }],
    usageMetadata: counts,
    modelVersion: model,
    responseId: "bench",
  };
  return `data: ${JSON.stringify(chunk)}\r\n\r\n`;
}

/** In the vendor's own form: the address names the model, and both contestants know it by the vendor's name. */
const gemini: Style = {
  path: "/gemini/v1beta/models/vendor-native:streamGenerateContent?alt=sse",
  vendorPath: ":streamGenerateContent?alt=sse",
  request: (_name, content) => ({
    contents: [{ role: "user", parts: [{ text: content }] }],
    generationConfig: { maxOutputTokens: maxTokens },
  }),
  opening: "",
  delta: (text, tokens) => candidate(text, tokens),
  closing: candidate("", 2_000, { finishReason: "STOP" }),
  mark: '"text":"',
  terminal: '"finishReason":"STOP"',
};

export const styles: Readonly<Record<LoadStyleName, Style>> = {
  chat,
  responses,
  messages,
  gemini,
};

export const styleNames: readonly StyleName[] = ["chat", "responses", "messages"];
