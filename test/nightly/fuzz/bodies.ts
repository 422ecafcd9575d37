/** Bodies as clients of each style send them, with every feature that the styles share. */
import type { Json } from "./shot.ts";

const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const parameters: Json = {
  type: "object",
  properties: { city: { type: "string" }, model: { type: ["string", "null"] } },
  required: ["city"],
};

const chat: Json = {
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", name: "ada", content: [{ type: "text", text: "Weather?" }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: "call_1",
          type: "function",
          function: { name: "weather", arguments: '{"city":"Ulm"}' },
        },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: "rain" },
    {
      role: "user",
      content: [
        { type: "text", text: "And this?" },
        { type: "image_url", image_url: { url: pixel, detail: "low" } },
      ],
    },
  ],
  tools: [{ type: "function", function: { name: "weather", description: "Tells it", parameters } }],
  tool_choice: "auto",
  parallel_tool_calls: false,
  response_format: { type: "json_schema", json_schema: { name: "reply", schema: parameters } },
  stop: ["END"],
  temperature: 0.5,
  top_p: 0.9,
  seed: 7,
  logit_bias: { "50256": -100 },
  reasoning_effort: "low",
  max_completion_tokens: 64,
  stream_options: { include_usage: true },
  metadata: { a: "b" },
  n: 1,
};

const messages: Json = {
  max_tokens: 2048,
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
  messages: [
    { role: "user", content: "Weather?" },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "c2lnbmVk" },
        { type: "text", text: "I look." },
        { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Ulm" } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "toolu_1",
          is_error: false,
          content: [{ type: "text", text: "rain" }],
        },
        {
          type: "image",
          source: { type: "base64", media_type: "image/png", data: pixel.slice(22) },
        },
        {
          type: "document",
          title: "a",
          source: { type: "text", media_type: "text/plain", data: "b" },
        },
      ],
    },
  ],
  tools: [{ name: "weather", description: "Tells it", input_schema: parameters }],
  tool_choice: { type: "auto", disable_parallel_tool_use: true },
  thinking: { type: "enabled", budget_tokens: 1024, display: "omitted" },
  output_config: { effort: "low", format: { type: "json_schema", schema: parameters } },
  stop_sequences: ["END"],
  metadata: { user_id: "u1" },
  service_tier: "auto",
};

const responses: Json = {
  instructions: "Be brief.",
  input: [
    { role: "user", content: "Weather?" },
    {
      type: "reasoning",
      id: "rs_1",
      summary: [{ type: "summary_text", text: "Hm." }],
      encrypted_content: "uas1.eyJkIjo0LCJzIjoiYWJjIn0",
    },
    {
      type: "function_call",
      id: "fc_1",
      call_id: "call_1",
      name: "weather",
      arguments: '{"city":"Ulm"}',
    },
    { type: "function_call_output", call_id: "call_1", output: "rain" },
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Rain.", annotations: [], logprobs: [] }],
    },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "And this?" },
        { type: "input_image", image_url: pixel, detail: "low" },
      ],
    },
  ],
  tools: [
    { type: "function", name: "weather", description: "Tells it", parameters, strict: false },
    { type: "custom", name: "patch", format: { type: "text" } },
  ],
  tool_choice: { type: "function", name: "weather" },
  parallel_tool_calls: true,
  text: { format: { type: "json_schema", name: "reply", schema: parameters }, verbosity: "low" },
  reasoning: { effort: "low", summary: "auto" },
  include: ["reasoning.encrypted_content"],
  max_output_tokens: 64,
  metadata: { a: "b" },
  store: false,
  truncation: "disabled",
  previous_response_id: null,
  client_metadata: { turn: 1 },
};

/** Bodies by the path that they are sent to; without `model` and `stream`. */
export const realBodies: Readonly<Record<string, Json>> = {
  "/v1/chat/completions": chat,
  "/v1/messages": messages,
  "/v1/responses": responses,
};

/** A request of Gemini's own API. */
export const geminiBody: Json = {
  contents: [{ role: "user", parts: [{ text: "Hi" }] }],
  generationConfig: { maxOutputTokens: 64, temperature: 0.5 },
  safetySettings: [],
};

/** A prompt cache of Gemini's. */
export const geminiCacheBody = {
  model: "models/gemini-x",
  contents: [{ role: "user", parts: [{ text: "A long text" }] }],
  ttl: "600s",
};

/** Tasks of models of each kind of vendor. */
export const taskBodies: readonly Json[] = [
  { modelKey: "draw", imageParams: { prompt: "A boat", size: "256x256" }, callbackId: "fuzz-1" },
  { modelKey: "speak", audioParams: { prompt: "Hello" } },
  { modelKey: "labs/flux", imageParams: { prompt: "A boat" } },
  {
    modelKey: "fal-ai/flux/schnell",
    imageParams: { prompt: "A boat" },
    requestContext: { request_id: "r" },
  },
  { modelKey: "wan2.6-t2i", imageParams: { prompt: "A boat" } },
  { modelKey: "m-chat", textParams: { messages: [{ role: "user", content: "Hi" }] } },
];

type FormPart = readonly [name: string, value: string | Buffer];

const png = Buffer.from("89504e470d0a1a0a", "hex");

/** Forms with files by their paths. */
export const forms: readonly (readonly [path: string, parts: readonly FormPart[]])[] = [
  [
    "/v1/images/edits",
    [
      ["model", "pictures"],
      ["prompt", "A boat"],
      ["image", png],
      ["n", "1"],
    ],
  ],
  [
    "/v1/images/variations",
    [
      ["model", "pictures"],
      ["image", png],
    ],
  ],
  [
    "/v1/audio/transcriptions",
    [
      ["model", "ears"],
      ["file", Buffer.alloc(2_000, 1)],
    ],
  ],
  [
    "/v1/audio/translations",
    [
      ["file", Buffer.alloc(2_000, 1)],
      ["model", "ears"],
    ],
  ],
];

function formPart([name, value]: FormPart, boundary: string): Buffer {
  const file = typeof value === "string" ? "" : `; filename="a.png"\r\ncontent-type: image/png`;
  return Buffer.concat([
    Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n`),
    Buffer.from(value as string),
    Buffer.from("\r\n"),
  ]);
}

/** The bytes of a form. */
export function writeForm(parts: readonly FormPart[], boundary: string): Buffer {
  const end = Buffer.from(`--${boundary}--\r\n`);
  return Buffer.concat([...parts.map((part) => formPart(part, boundary)), end]);
}
