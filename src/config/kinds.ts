/**
 * The closed lists of words of `uas.yaml`: kinds, dialects, model types; and the kinds that this
 * version serves.
 */
import { CancelBilling, ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorQuirks } from "../core/vendor-quirks.ts";

/** Every kind of vendor that a configuration may name, served by this version or not. */
export const knownKinds: readonly string[] = [
  "openai",
  "openai-compatible",
  "anthropic",
  "gemini",
  "replicate",
  "dashscope",
  "fal",
  "cohere",
  "jina",
  "demo",
];

/** The address and the paths of each kind, for docs/reference. Links are relative to docs/. */
export const kindAddresses: Readonly<Record<string, string>> = {
  openai:
    "`{base_url}/responses`, `{base_url}/chat/completions`, and OpenAI's other paths; tasks at `/images/generations`, `/audio/speech`",
  "openai-compatible": "as `openai`, without `/responses`; rerank at `{base_url}/rerank`",
  anthropic: "`{base_url}/v1/messages`; without `/v1` if the address ends in it",
  gemini:
    "`{base_url}/v1beta/models/{model}:generateContent`, `:streamGenerateContent`, `:batchEmbedContents`, for videos `:predictLongRunning`; without `/v1beta` if the address ends in it",
  replicate:
    "`{base_url}/v1/models/{owner}/{name}/predictions`, for a `name:version` `{base_url}/v1/predictions`. `TEXT` with a [`native_prefix`](native.md#replicate) only",
  dashscope:
    "`base_url` is `https://dashscope.aliyuncs.com` or `https://dashscope-intl.aliyuncs.com`; below it `/compatible-mode/v1/…` for chat and embeddings, `/api/v1/services/…` for tasks and rerank, `/compatible-api/v1/reranks` for `qwen3-rerank`",
  fal: "`{base_url}/{model}`. `TEXT` with a [`native_prefix`](native.md#fal) only",
  cohere:
    "rerank at `{base_url}/v1/rerank`, `/v2/rerank`; without the version if the address ends in it",
  jina: "rerank at `{base_url}/rerank`; with `/v1` before it if the address lacks it",
  demo: "no address: it runs inside the gateway",
};

/** Every dialect that a configuration may name. */
export const knownDialects: readonly string[] = [
  "chat-completions",
  "responses",
  "messages",
  "gemini",
];

/** Every model type, by its word. */
export const modelTypes: ReadonlyMap<string, ModelType> = new Map([
  ["TEXT", ModelType.TEXT],
  ["IMAGE", ModelType.IMAGE],
  ["VIDEO", ModelType.VIDEO],
  ["AUDIO", ModelType.AUDIO],
  ["EMBEDDING", ModelType.EMBEDDING],
  ["RERANK", ModelType.RERANK],
  ["MODERATION", ModelType.MODERATION],
]);

/** Names a model type as the configuration does. */
export function modelTypeWord(type: ModelType): string {
  for (const [word, value] of modelTypes) if (value === type) return word;
  return "UNSPECIFIED";
}

/** The billing of cancelled tasks, by its word. */
export const cancelBillings: ReadonlyMap<string, CancelBilling> = new Map([
  ["none", CancelBilling.NONE],
  ["upstream", CancelBilling.UPSTREAM],
]);

/** Names the billing of cancelled tasks as the configuration does. */
export function cancelBillingWord(billing: CancelBilling): string {
  for (const [word, value] of cancelBillings) if (value === billing) return word;
  return "none";
}

/** The abilities of one kind of vendor in this version. */
export interface ServedKind {
  /** The dialects that it speaks, by their words. */
  readonly dialects: readonly string[];
  readonly modelTypes: readonly ModelType[];
  /** Whether `base_url` is required. A kind that does not require it has no address at all. */
  readonly needsBaseUrl: boolean;
  /** Whether `api_key` is required. */
  readonly needsApiKey: boolean;
  /** Its native interface. Absent if this version serves none. */
  readonly native?: object;
  /** The default of `on_disconnect`, if it is not `grace`. */
  readonly onDisconnect?: "drain";
  /**
   * The default of `limit_parameter`. Absent if the dialects of the kind have one name for the
   * limit.
   */
  readonly limitParameter?: "max_tokens" | "max_completion_tokens";
  /** Deviations from its documented dialects. Absent if there are none. */
  readonly quirks?: VendorQuirks;
}

/** The kinds that this version serves, by their words. */
export type ServedKinds = ReadonlyMap<string, ServedKind>;
