/** Vendors by the prefixes of LiteLLM's model names. */
import type { Upstream } from "./source.ts";

/** A vendor of LiteLLM. */
export interface LitellmVendor {
  readonly preset?: string;
  readonly kind?: string;
  /** The address if it is not that of the preset. */
  readonly baseUrl?: string;
  /** The variable that LiteLLM reads if a deployment has no `api_key`. */
  readonly variable?: string;
  /** The end of the address that LiteLLM leaves out. */
  readonly path?: string;
}

const hosted = (preset: string, variable: string): LitellmVendor => ({ preset, variable });

/** By prefix: https://docs.litellm.ai/docs/providers */
const vendors: ReadonlyMap<string, LitellmVendor> = new Map([
  ["openai", hosted("openai", "OPENAI_API_KEY")],
  ["anthropic", hosted("anthropic", "ANTHROPIC_API_KEY")],
  ["gemini", hosted("gemini", "GEMINI_API_KEY")],
  ["azure", hosted("azure-openai", "AZURE_API_KEY")],
  ["groq", hosted("groq", "GROQ_API_KEY")],
  ["mistral", hosted("mistral", "MISTRAL_API_KEY")],
  ["deepseek", hosted("deepseek", "DEEPSEEK_API_KEY")],
  ["xai", hosted("xai", "XAI_API_KEY")],
  ["together_ai", hosted("together", "TOGETHERAI_API_KEY")],
  ["fireworks_ai", hosted("fireworks", "FIREWORKS_AI_API_KEY")],
  ["openrouter", hosted("openrouter", "OPENROUTER_API_KEY")],
  ["perplexity", hosted("perplexity", "PERPLEXITYAI_API_KEY")],
  ["cerebras", hosted("cerebras", "CEREBRAS_API_KEY")],
  ["deepinfra", hosted("deepinfra", "DEEPINFRA_API_KEY")],
  ["nvidia_nim", hosted("nvidia", "NVIDIA_NIM_API_KEY")],
  ["moonshot", hosted("moonshot", "MOONSHOT_API_KEY")],
  ["dashscope", hosted("dashscope-intl", "DASHSCOPE_API_KEY")],
  ["cohere", hosted("cohere", "COHERE_API_KEY")],
  ["jina_ai", hosted("jina", "JINA_AI_API_KEY")],
  ["replicate", hosted("replicate", "REPLICATE_API_KEY")],
  ["fal_ai", hosted("fal", "FAL_AI_API_KEY")],
  ["ollama", { preset: "ollama", path: "/v1" }],
  ["ollama_chat", { preset: "ollama", path: "/v1" }],
  ["hosted_vllm", { preset: "vllm" }],
  ["lm_studio", { preset: "lmstudio" }],
  ["litellm_proxy", { kind: "openai-compatible" }],
  ["openai_like", { kind: "openai-compatible" }],
  ["custom_openai", { kind: "openai-compatible" }],
]);

/** LiteLLM's vendors that this gateway has no kind for. */
const otherVendors: ReadonlySet<string> = new Set([
  "bedrock",
  "vertex_ai",
  "vertex_ai_beta",
  "sagemaker",
  "sagemaker_chat",
  "azure_ai",
  "azure_text",
  "huggingface",
  "watsonx",
  "databricks",
  "github",
  "github_copilot",
  "cohere_chat",
  "predibase",
  "text-completion-openai",
  "volcengine",
  "snowflake",
  "vllm",
  "ai21",
  "voyage",
  "nlp_cloud",
  "elevenlabs",
  "deepgram",
]);

/** A model of LiteLLM: its vendor's prefix, and the vendor's name of the model. */
export interface LitellmModel {
  readonly prefix: string;
  readonly name: string;
}

/**
 * Splits `prefix/name`. Names without a prefix of LiteLLM are of the vendor whose names they begin
 * with.
 */
export function litellmModel(written: string, custom: string | undefined): LitellmModel {
  const [head = "", ...rest] = written.split("/");
  const isPrefixed = rest.length > 0 && (vendors.has(head) || otherVendors.has(head));
  const name = isPrefixed ? rest.join("/") : written;
  return { prefix: custom ?? (isPrefixed ? head : guessed(written)), name };
}

function guessed(name: string): string {
  if (/^(gpt-|o\d|chatgpt-|text-embedding-|dall-e|tts-|whisper-|omni-moderation)/.test(name)) {
    return "openai";
  }
  if (name.startsWith("claude-")) return "anthropic";
  return name.includes("/") ? (name.split("/")[0] ?? "") : "";
}

/** The vendor of a prefix; undefined if this gateway has no kind for it. */
export function litellmVendor(prefix: string): LitellmVendor | undefined {
  return vendors.get(prefix);
}

/** Chooses the kind for an address: another server at OpenAI's prefix speaks its API. */
export function upstreamOf(vendor: LitellmVendor, baseUrl: string | undefined): Upstream {
  const { preset, kind } = vendor;
  const isOpenai = preset === "openai" && baseUrl !== undefined;
  if (isOpenai && !/^https:\/\/api\.openai\.com(\/|$)/.test(baseUrl)) {
    return { kind: "openai-compatible", baseUrl };
  }
  return {
    ...(preset !== undefined && { preset }),
    ...(kind !== undefined && { kind }),
    ...(baseUrl !== undefined && { baseUrl }),
  };
}
