/**
 * Known vendors. `preset:` of a vendor replaces the keys that the vendor's documentation states.
 */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorQuirks } from "../core/vendor-quirks.ts";

/** Values of a preset. Keys of the vendor itself take precedence. */
export interface Preset {
  /** The kind of vendor. */
  readonly kind: string;
  /** The address; empty if it differs by customer, so `base_url` is required. */
  readonly baseUrl: string;
  readonly needsApiKey: boolean;
  /**
   * The member that limits a reply there, the default of `limit_parameter`. Absent if it does not
   * speak chat completions.
   */
  readonly limitParameter?: "max_tokens" | "max_completion_tokens";
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

const { TEXT, IMAGE, VIDEO, AUDIO, EMBEDDING, RERANK, MODERATION } = ModelType;

/** The vendor that a kind is named after. */
function official(
  kind: string,
  baseUrl: string,
  { source, modelTypes, limitParameter }: Pick<Preset, "source" | "modelTypes" | "limitParameter">,
): Preset {
  const limit = limitParameter === undefined ? {} : { limitParameter };
  return { kind, baseUrl, needsApiKey: true, modelTypes, source, ...limit };
}

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

const dashscopeTypes = [TEXT, IMAGE, VIDEO, EMBEDDING, RERANK];

const completionLimit = { limitParameter: "max_completion_tokens" } as const;

/** The presets by name. */
export const presets: ReadonlyMap<string, Preset> = new Map<string, Preset>([
  [
    "anthropic",
    official("anthropic", "https://api.anthropic.com", {
      source: "https://docs.claude.com/en/api/overview",
      modelTypes: [TEXT],
    }),
  ],
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
    "cohere",
    official("cohere", "https://api.cohere.com", {
      source: "https://docs.cohere.com/reference/rerank",
      modelTypes: [RERANK],
    }),
  ],
  [
    "dashscope",
    official("dashscope", "https://dashscope.aliyuncs.com", {
      source: "https://help.aliyun.com/zh/model-studio/compatibility-of-openai-with-dashscope",
      limitParameter: "max_tokens",
      modelTypes: dashscopeTypes,
    }),
  ],
  [
    "dashscope-intl",
    official("dashscope", "https://dashscope-intl.aliyuncs.com", {
      source:
        "https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope",
      limitParameter: "max_tokens",
      modelTypes: dashscopeTypes,
    }),
  ],
  [
    "deepinfra",
    hosted("https://api.deepinfra.com/v1/openai", "https://deepinfra.com/docs/openai_api", {
      modelTypes: [TEXT, EMBEDDING],
    }),
  ],
  ["deepseek", hosted("https://api.deepseek.com", "https://api-docs.deepseek.com/")],
  [
    "fal",
    official("fal", "https://queue.fal.run", {
      source: "https://docs.fal.ai/model-apis/model-endpoints/queue",
      modelTypes: [TEXT, IMAGE, VIDEO, AUDIO],
    }),
  ],
  [
    "fireworks",
    hosted(
      "https://api.fireworks.ai/inference/v1",
      "https://docs.fireworks.ai/tools-sdks/openai-compatibility",
      { modelTypes: [TEXT, EMBEDDING], quirks: strictTemplates },
    ),
  ],
  [
    "gemini",
    official("gemini", "https://generativelanguage.googleapis.com", {
      source: "https://ai.google.dev/api",
      modelTypes: [TEXT, IMAGE, VIDEO, EMBEDDING],
    }),
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
    "jina",
    official("jina", "https://api.jina.ai/v1", {
      source: "https://jina.ai/reranker/",
      modelTypes: [RERANK],
    }),
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
    "openai",
    official("openai", "https://api.openai.com/v1", {
      source: "https://platform.openai.com/docs/api-reference/introduction",
      limitParameter: "max_completion_tokens",
      modelTypes: [TEXT, IMAGE, AUDIO, EMBEDDING, MODERATION],
    }),
  ],
  [
    "openrouter",
    hosted("https://openrouter.ai/api/v1", "https://openrouter.ai/docs/api-reference/overview", {
      modelTypes: [TEXT, EMBEDDING],
    }),
  ],
  ["perplexity", hosted("https://api.perplexity.ai", "https://docs.perplexity.ai/api-reference")],
  [
    "replicate",
    official("replicate", "https://api.replicate.com", {
      source: "https://replicate.com/docs/reference/http",
      modelTypes: [TEXT, IMAGE, VIDEO, AUDIO],
    }),
  ],
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

/**
 * The default address of a kind, which the preset of the same name has. DashScope has none: a key
 * is valid in one of its two regions only.
 *
 * @returns empty if `base_url` is required
 */
export function defaultAddress(kind: string | undefined): string {
  return kind === undefined || kind === "dashscope" ? "" : (presets.get(kind)?.baseUrl ?? "");
}
