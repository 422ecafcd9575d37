/**
 * Known vendors of OpenAI's API. `preset:` of a vendor replaces the keys that the vendor's
 * documentation states.
 */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorQuirks } from "../core/vendor-quirks.ts";

/** Values of a preset. Keys of the vendor itself take precedence. */
export interface Preset {
  /** The kind of vendor. */
  readonly kind: "openai" | "openai-compatible";
  /** The address; empty if it differs by customer, so `base_url` is required. */
  readonly baseUrl: string;
  readonly needsApiKey: boolean;
  /** The member that limits a reply there, the default of `limit_parameter`. */
  readonly limitParameter: "max_tokens" | "max_completion_tokens";
  /** Types as which its models can be configured. */
  readonly modelTypes: readonly ModelType[];
  /** Deviations from its documented dialects. Absent if there are none. */
  readonly quirks?: VendorQuirks;
  /**
   * Form of its rerank requests, if it is not the form of vLLM: `texts` is the form of Text
   * Embeddings Inference.
   */
  readonly rerankForm?: "texts";
  /** Page of the vendor's documentation that states this. */
  readonly source: string;
}

const { TEXT, IMAGE, AUDIO, EMBEDDING, RERANK } = ModelType;

/** A hosted vendor of kind `openai-compatible`. */
function hosted(
  baseUrl: string,
  source: string,
  { limitParameter = "max_tokens", modelTypes = [TEXT], quirks }: Partial<Preset> = {},
): Preset {
  const kind = "openai-compatible";
  return {
    kind,
    baseUrl,
    needsApiKey: true,
    limitParameter,
    modelTypes,
    source,
    ...(quirks && { quirks }),
  };
}

/** A server that the operator runs: its address is the one that its documentation starts it at. */
function local(baseUrl: string, source: string): Preset {
  const modelTypes = [TEXT, EMBEDDING];
  return { ...hosted(baseUrl, source, { modelTypes }), needsApiKey: false };
}

/**
 * Chat templates of several models, such as Qwen's, refuse system messages behind the first
 * message.
 */
const strictTemplates: VendorQuirks = { lateSystem: "as_user" };

const completionLimit = { limitParameter: "max_completion_tokens" } as const;

/** The presets by name. */
export const presets: ReadonlyMap<string, Preset> = new Map([
  [
    "azure-openai",
    {
      kind: "openai",
      baseUrl: "",
      needsApiKey: true,
      limitParameter: "max_completion_tokens",
      modelTypes: [TEXT, IMAGE, AUDIO, EMBEDDING],
      source: "https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle",
    },
  ],
  [
    "cerebras",
    hosted(
      "https://api.cerebras.ai/v1",
      "https://inference-docs.cerebras.ai/resources/openai",
      completionLimit,
    ),
  ],
  [
    "deepinfra",
    hosted("https://api.deepinfra.com/v1/openai", "https://deepinfra.com/docs/openai_api", {
      modelTypes: [TEXT, EMBEDDING],
    }),
  ],
  ["deepseek", hosted("https://api.deepseek.com", "https://api-docs.deepseek.com/")],
  [
    "fireworks",
    hosted(
      "https://api.fireworks.ai/inference/v1",
      "https://docs.fireworks.ai/tools-sdks/openai-compatibility",
      { modelTypes: [TEXT, EMBEDDING], quirks: strictTemplates },
    ),
  ],
  [
    "groq",
    hosted(
      "https://api.groq.com/openai/v1",
      "https://console.groq.com/docs/openai",
      completionLimit,
    ),
  ],
  [
    "lmstudio",
    {
      ...local("http://127.0.0.1:1234/v1", "https://lmstudio.ai/docs/api/endpoints/openai"),
      quirks: strictTemplates,
    },
  ],
  [
    "mistral",
    hosted("https://api.mistral.ai/v1", "https://docs.mistral.ai/api/", {
      modelTypes: [TEXT, EMBEDDING],
      quirks: { callIds: "alphanumeric_9", prefill: "refused", blankText: "refused" },
    }),
  ],
  [
    "moonshot",
    hosted("https://api.moonshot.ai/v1", "https://platform.moonshot.ai/docs/api/chat", {
      quirks: { blankText: "refused" },
    }),
  ],
  ["nvidia", hosted("https://integrate.api.nvidia.com/v1", "https://docs.api.nvidia.com/nim/")],
  [
    "ollama",
    local("http://127.0.0.1:11434/v1", "https://docs.ollama.com/api/openai-compatibility"),
  ],
  [
    "openrouter",
    hosted("https://openrouter.ai/api/v1", "https://openrouter.ai/docs/api-reference/overview", {
      modelTypes: [TEXT, EMBEDDING],
    }),
  ],
  ["perplexity", hosted("https://api.perplexity.ai", "https://docs.perplexity.ai/api-reference")],
  [
    "tei",
    {
      ...local("http://127.0.0.1:8080", "https://huggingface.github.io/text-embeddings-inference/"),
      modelTypes: [EMBEDDING, RERANK],
      rerankForm: "texts",
    },
  ],
  [
    "together",
    hosted(
      "https://api.together.xyz/v1",
      "https://docs.together.ai/docs/openai-api-compatibility",
      { modelTypes: [TEXT, IMAGE, EMBEDDING] },
    ),
  ],
  [
    "vllm",
    {
      ...local(
        "http://127.0.0.1:8000/v1",
        "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
      ),
      modelTypes: [TEXT, EMBEDDING, RERANK],
      quirks: strictTemplates,
    },
  ],
  [
    "xai",
    hosted("https://api.x.ai/v1", "https://docs.x.ai/docs/api-reference", {
      ...completionLimit,
      modelTypes: [TEXT, IMAGE],
    }),
  ],
]);
