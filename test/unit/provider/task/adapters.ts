/** Every adapter of tasks with its simulated vendor: what the contract is proved over. */
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig, PriceConfig } from "../../../../src/config/config.ts";
import { vendorKinds } from "../../../../src/provider/index.ts";
import type { TaskSubmission, VendorTasks } from "../../../../src/provider/task.ts";
import type { Vendor } from "../../../../src/provider/vendor.ts";
import { vendorConfig } from "../listener.ts";
import type { Adapter } from "./adapter.ts";
import { dashscopeSays, dashscopeSecret, startDashscope } from "./dashscope-vendor.ts";
import { falAdapters } from "./fal-adapters.ts";
import { geminiError, geminiSecret, startGemini } from "./gemini-vendor.ts";
import { openaiError, openaiSecret, startOpenai } from "./openai-vendor.ts";
import { replicateError, replicateSecret, startReplicate } from "./replicate-vendor.ts";

const picture = "data:image/png;base64,aGVsbG8=";

const openai = {
  closed: ["model", "stream", "response_format", "unknown_one"],
  secret: openaiSecret,
  isSynchronous: true,
  basePath: "/v1",
  start: startOpenai,
  says: {
    money: openaiError(429, "You exceeded your current quota", "insufficient_quota"),
    invalid: openaiError(400, "Invalid value: 'prompt'."),
    busy: { ...openaiError(429, "Rate limit reached"), headers: { "retry-after": "7" } },
    full: openaiError(503, "The engine is overloaded"),
    broken: openaiError(500, "The server had an error"),
  },
};

const gemini = {
  closed: ["contents", "unknown_one"],
  secret: geminiSecret,
  basePath: "",
  start: startGemini,
  says: {
    money: geminiError(403, "PERMISSION_DENIED", "Billing is disabled", "BILLING_DISABLED"),
    invalid: geminiError(400, "INVALID_ARGUMENT", "Unsupported aspect ratio"),
    busy: {
      ...geminiError(429, "RESOURCE_EXHAUSTED", "Quota exceeded"),
      headers: { "retry-after": "7" },
    },
    full: geminiError(503, "UNAVAILABLE", "The model is overloaded."),
    broken: geminiError(500, "INTERNAL", "An internal error has occurred."),
  },
};

const replicate = {
  closed: ["prompt", "seed", "num_outputs", "num_frames", "webhook"],
  kind: "replicate",
  secret: replicateSecret,
  isSynchronous: false,
  basePath: "",
  start: startReplicate,
  says: {
    money: replicateError(402, "You have insufficient credit to run this model."),
    invalid: replicateError(422, "- input.prompt is required"),
    busy: replicateError(429, "Request was throttled. Your rate limit resets in ~7s."),
    full: replicateError(503, "Service unavailable"),
    broken: replicateError(500, "Internal server error"),
  },
};

const dashscope = {
  closed: ["n", "size", "duration", "seed", "audio", "watermark", "prompt_extend"],
  kind: "dashscope",
  secret: dashscopeSecret,
  isSynchronous: false,
  basePath: "/api/v1",
  start: startDashscope,
  forbidden: { prompt: "something forbidden" },
  says: dashscopeSays,
};

const speech = {
  type: ModelType.AUDIO,
  model: "gpt-4o-mini-tts",
  least: { text: "Good morning." },
  forbidden: { text: "say something forbidden" },
};

const drawing = {
  type: ModelType.IMAGE,
  model: "gpt-image-2",
  least: { prompt: "A lighthouse" },
  most: { prompt: "A lighthouse", n: 3, size: "1536×1024", quality: "low", outputFormat: "webp" },
  forbidden: { prompt: "something forbidden" },
};

/** All adapters that send requests. */
export const adapters: readonly Adapter[] = [
  {
    ...openai,
    ...drawing,
    kind: "openai",
    most: { ...drawing.most, extra: { background: "opaque", output_compression: 50 } },
  },
  {
    ...openai,
    ...speech,
    kind: "openai",
    most: {
      ...speech.least,
      voice: "nova",
      format: "pcm",
      speed: 1.5,
      extra: { instructions: "loud" },
    },
  },
  {
    ...openai,
    ...drawing,
    kind: "openai-compatible",
    closed: ["model", "stream", "prompt", "n", "size", "num_images", "batch_size"],
  },
  {
    ...openai,
    ...speech,
    kind: "openai-compatible",
    closed: ["model", "stream", "input", "voice", "response_format"],
    most: {
      prompt: "Good morning.",
      voice: "nova",
      format: "pcm",
      extra: { instructions: "loud" },
    },
  },
  {
    ...gemini,
    kind: "gemini",
    type: ModelType.IMAGE,
    model: "gemini-2.5-flash-image",
    isSynchronous: true,
    least: { prompt: "A lighthouse" },
    most: {
      prompt: "A boat",
      imageUrls: [picture],
      aspectRatio: "16:9",
      resolution: "2k",
      seed: 4,
    },
    forbidden: { prompt: "something forbidden" },
  },
  {
    ...gemini,
    kind: "gemini",
    type: ModelType.VIDEO,
    model: "veo-3.1",
    isSynchronous: false,
    least: { prompt: "Waves" },
    most: {
      prompt: "Waves",
      negativePrompt: "people",
      imageUrl: picture,
      duration: 4,
      aspectRatio: "9:16",
      resolution: "720p",
      seed: 4,
    },
    forbidden: { prompt: "something forbidden" },
  },
  {
    ...replicate,
    type: ModelType.IMAGE,
    model: "black-forest-labs/flux-schnell",
    least: { prompt: "A lighthouse" },
    most: {
      prompt: "A lighthouse",
      n: 2,
      aspectRatio: "16:9",
      imageUrls: ["https://example.com/a.png"],
      outputFormat: "webp",
      steps: 4,
      seed: 4,
      extra: { go_fast: {} },
    },
  },
  {
    ...replicate,
    type: ModelType.VIDEO,
    model: "minimax/video-01",
    least: { prompt: "Waves", duration: 5 },
    most: { prompt: "Waves", duration: 10, imageUrl: picture, aspectRatio: "16:9" },
  },
  {
    ...replicate,
    closed: ["text", "prompt", "duration", "webhook"],
    type: ModelType.AUDIO,
    model: "minimax/speech-02",
    least: { text: "Good morning." },
    most: { text: "Good morning.", voice: "calm" },
  },
  {
    ...dashscope,
    type: ModelType.IMAGE,
    model: "wan2.2-t2i-flash",
    least: { prompt: "A lighthouse" },
    most: {
      prompt: "A lighthouse",
      negativePrompt: "people",
      size: "1280x720",
      n: 2,
      seed: 4,
      watermark: false,
      promptExtend: true,
      extra: { style: "<anime>" },
    },
  },
  {
    ...dashscope,
    type: ModelType.VIDEO,
    model: "wan2.6-i2v",
    least: { prompt: "Waves" },
    most: {
      prompt: "Waves",
      imageUrl: picture,
      audioUrl: "https://example.com/a.mp3",
      duration: 10,
      resolution: "720P",
      generateAudio: true,
      seed: 4,
    },
  },
  ...falAdapters,
];

/** Creates a vendor of a kind at an address. */
export function madeVendor(kind: string, baseUrl: string, apiKey: string): Vendor {
  const made = vendorKinds[kind];
  if (made === undefined) throw new Error(`no kind ${kind}`);
  return made.create(vendorConfig({ kind, baseUrl, apiKey }));
}

/** Returns the tasks of a vendor. */
export function tasksOf({ tasks }: Vendor): VendorTasks {
  if (tasks === undefined) throw new Error("it runs no tasks");
  return tasks;
}

/** A task, with what the test changes. */
export function submission(
  { model, type, least }: Pick<Adapter, "model" | "type" | "least">,
  changes: Partial<TaskSubmission> = {},
): TaskSubmission {
  const attemptToken = "0199a0b0-1111-7222-8333-444455556666";
  const signal = new AbortController().signal;
  return { attemptToken, model, type, params: least, signal, ...changes };
}

const free: PriceConfig = {
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
  image: undefined,
  second: undefined,
  request: undefined,
};

/** A model of a type with a price. */
export function modelOf(type: ModelType, price: Partial<PriceConfig> = {}): ModelConfig {
  return {
    key: "m",
    name: "m",
    type,
    routes: [{ vendor: "acme", model: "m" }],
    maxOutputTokens: 0,
    holdOutputTokens: 0,
    prices: [{ fromMs: -Infinity, price: { ...free, ...price } }],
  };
}
