/** Failures of vendors whose status says success, in the forms that public reports describe. */
import { type Json, type VendorStyle, writeEvents } from "./vendor-reply.ts";

/** A form of a failure. */
export interface FailureForm {
  /** Completes the sentence "The vendor …". */
  readonly name: string;
  readonly vendors: string;
  /** As of a quirk. */
  readonly source: string;
  readonly style: VendorStyle;
  /** Its stream. Absent if streams do not show the failure. */
  readonly stream?: string;
  /** Its whole reply, or a reply instead of a stream. Absent if they do not show the failure. */
  readonly whole?: Json;
  /** Whether a caller of the vendor's style gets it as it is: all bytes pass. Default: no. */
  readonly isPassed?: boolean;
}

const events = (style: VendorStyle, ...all: readonly Json[]): string =>
  writeEvents(
    style,
    all.map((event, sequence_number) =>
      style === "responses" ? { ...event, sequence_number } : event,
    ),
  );
const bare = (...all: readonly Json[]): string =>
  all.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");

const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m" };
const role = { ...head, choices: [{ index: 0, delta: { role: "assistant", content: "" } }] };
const ending = (finish_reason: string): Json => ({
  ...head,
  choices: [{ index: 0, delta: {}, finish_reason }],
});
const created = { type: "response.created", response: { id: "resp_1", output: [] } };
const failed = {
  id: "resp_1",
  object: "response",
  status: "failed",
  error: { code: "server_error", message: "it broke" },
  output: [],
};
const start = {
  type: "message_start",
  message: { id: "msg_1", content: [], usage: { input_tokens: 9, output_tokens: 1 } },
};
const api = { type: "api_error", message: "it broke" };
const broken = { message: "it broke", type: "server_error", code: "server_error" };
const google = { error: { code: 500, message: "it broke", status: "INTERNAL" } };

/** All forms. */
export const failureForms: readonly FailureForm[] = [
  {
    name: "sends an error as the first event",
    vendors: "many",
    source: "Wei-Shaw/sub2api#5563",
    style: "chat",
    stream: bare({ error: broken }),
    whole: { error: broken },
  },
  {
    name: "sends an error behind the role",
    vendors: "vLLM, OpenRouter",
    source: "QuantumNous/new-api#7486",
    style: "chat",
    stream: bare(role, { error: { message: "it broke", code: 502 } }),
  },
  {
    name: "sends an error in a chunk with a choice",
    vendors: "OpenRouter",
    source: "https://openrouter.ai/docs/api-reference/errors",
    style: "chat",
    stream: bare({
      ...head,
      error: { code: "server_error", message: "it broke" },
      choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }],
    }),
  },
  {
    name: "ends in error",
    vendors: "OpenRouter, Mistral",
    source: "https://openrouter.ai/docs/api-reference/errors",
    style: "chat",
    stream: bare(role, ending("error")),
    whole: { choices: [{ index: 0, message: { content: "" }, finish_reason: "error" }] },
  },
  {
    name: "ends for want of resources",
    vendors: "DeepSeek",
    source: "https://api-docs.deepseek.com/api/create-chat-completion",
    style: "chat",
    stream: bare(role, ending("insufficient_system_resource")),
  },
  {
    name: "sends an error object without a wrapper",
    vendors: "old vLLM, FastChat",
    source: "vllm-project/vllm#2204",
    style: "chat",
    stream: bare({ object: "error", message: "it broke", type: "ServerError", code: 500 }),
    whole: { object: "error", message: "it broke", type: "ServerError", code: 500 },
  },
  {
    name: "sends an error as text",
    vendors: "Ollama, TGI",
    source: "https://github.com/ollama/ollama/blob/main/docs/api.md",
    style: "chat",
    stream: bare({ error: "it broke" }),
    whole: { error: "it broke" },
  },
  {
    name: "announces a call and sends none",
    vendors: "OpenCode Zen",
    source: "jasonxu114514/opencode2api#27",
    style: "chat",
    stream: bare(role, ending("tool_calls")),
    isPassed: true,
  },
  {
    name: "breaks off behind the role",
    vendors: "all",
    source: "LibreChat-AI/agents#493",
    style: "chat",
    stream: bare(role),
  },
  {
    name: "sends an end and nothing before it",
    vendors: "proxies",
    source: "QuantumNous/new-api#7486",
    style: "chat",
    stream: "data: [DONE]\n\n",
    whole: { id: "chatcmpl-1", object: "chat.completion", choices: [] },
  },
  {
    name: "sends a flat error event",
    vendors: "OpenAI",
    source: "maximhq/bifrost#5395",
    style: "responses",
    stream: events("responses", {
      type: "error",
      code: "server_error",
      message: "it broke",
      param: null,
    }),
  },
  {
    name: "sends a nested error event behind the start",
    vendors: "OpenAI, ChatGPT's backend",
    source: "maximhq/bifrost#5395",
    style: "responses",
    stream: events("responses", created, { type: "error", error: broken }),
  },
  {
    name: "sends a failed response",
    vendors: "OpenAI",
    source: "https://platform.openai.com/docs/api-reference/responses-streaming",
    style: "responses",
    stream: events("responses", created, { type: "response.failed", response: failed }),
    whole: failed,
  },
  {
    name: "sends an error without a type",
    vendors: "proxies of chat completions",
    source: "QuantumNous/new-api#7486",
    style: "responses",
    stream: bare({ error: broken }),
    whole: { error: broken },
  },
  {
    name: "breaks off behind the start",
    vendors: "all",
    source: "duolahypercho/codex-router#814",
    style: "responses",
    stream: events("responses", created),
  },
  {
    name: "sends an error event",
    vendors: "Anthropic",
    source: "Wei-Shaw/sub2api#5563",
    style: "messages",
    stream: events("messages", { type: "error", error: api }),
    whole: { type: "error", error: api },
  },
  {
    name: "sends an error event behind the start",
    vendors: "Anthropic",
    source: "Wei-Shaw/sub2api#5563",
    style: "messages",
    stream: events("messages", start, { type: "ping" }, { type: "error", error: api }),
  },
  {
    name: "sends an error without a type",
    vendors: "proxies of chat completions",
    source: "QuantumNous/new-api#7486",
    style: "messages",
    stream: bare({ error: broken }),
    whole: { error: broken },
  },
  {
    name: "breaks off behind the start",
    vendors: "all",
    source: "NVIDIA-NeMo/Switchyard#283",
    style: "messages",
    stream: events("messages", start),
  },
  {
    name: "sends an error as an event",
    vendors: "Gemini",
    source: "snailyp/gemini-balance#347",
    style: "gemini",
    stream: bare(google),
    whole: google,
  },
  {
    name: "cannot read its own call",
    vendors: "Gemini",
    source: "https://ai.google.dev/api/generate-content",
    style: "gemini",
    stream: bare({ candidates: [{ content: {}, finishReason: "MALFORMED_FUNCTION_CALL" }] }),
    whole: { candidates: [{ content: {}, finishReason: "MALFORMED_FUNCTION_CALL" }] },
  },
  ...(["chat", "responses", "messages"] as const).map((style) => ({
    name: "sends an empty object",
    vendors: "proxies",
    source: "QuantumNous/new-api#4362",
    style,
    whole: {},
  })),
  ...(["chat", "responses", "messages", "gemini"] as const).map((style) => ({
    name: "sends nothing at all",
    vendors: "all",
    source: "snailyp/gemini-balance#347",
    style,
    stream: "",
  })),
];
