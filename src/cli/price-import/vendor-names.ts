/** The vendors of a configuration by the names that price lists give them. */
import type { VendorConfig } from "../../config/config.ts";
import { type SourceFormat, PriceRefusal } from "./source.ts";

/**
 * A vendor's host and its names in price lists. A name that is left out: that list does not have
 * it.
 */
interface ProviderRow {
  /** Host of its `base_url`. A host that begins with a dot matches every host with that ending. */
  readonly host: string;
  /** The kind of vendor that it is taken for at another host, such as a proxy's. */
  readonly kind?: string;
  readonly "genai-prices"?: string;
  readonly "models.dev"?: string;
}

/**
 * Vendors in price lists. Each row comes from the provider's `api_pattern` in
 * @pydantic/genai-prices 0.1.8 and from its `provider.toml` in models.dev. The address next to it
 * is the vendor's own page about its host or prices.
 */
export const providerRows: readonly ProviderRow[] = [
  // https://developers.openai.com/api/docs/pricing
  { host: "api.openai.com", kind: "openai", "genai-prices": "openai", "models.dev": "openai" },
  // https://learn.microsoft.com/azure/ai-foundry/openai/reference
  { host: ".openai.azure.com", "genai-prices": "azure", "models.dev": "azure" },
  // https://www.anthropic.com/pricing#api
  {
    host: "api.anthropic.com",
    kind: "anthropic",
    "genai-prices": "anthropic",
    "models.dev": "anthropic",
  },
  // https://ai.google.dev/gemini-api/docs/pricing
  {
    host: "generativelanguage.googleapis.com",
    kind: "gemini",
    "genai-prices": "google",
    "models.dev": "google",
  },
  // https://www.alibabacloud.com/help/en/model-studio/models: the two regions have different
  // prices, so no kind.
  { host: "dashscope-intl.aliyuncs.com", "models.dev": "alibaba" },
  // https://help.aliyun.com/zh/model-studio/models: billed in yuan, models.dev converts.
  { host: "dashscope.aliyuncs.com", "models.dev": "alibaba-cn" },
  // https://replicate.com/pricing: in neither list.
  { host: "api.replicate.com", kind: "replicate" },
  // https://fal.ai/pricing: in neither list.
  { host: "queue.fal.run", kind: "fal" },
  // https://api-docs.deepseek.com/quick_start/pricing
  { host: "api.deepseek.com", "genai-prices": "deepseek", "models.dev": "deepseek" },
  // https://groq.com/pricing
  { host: "api.groq.com", "genai-prices": "groq", "models.dev": "groq" },
  // https://mistral.ai/pricing
  { host: "api.mistral.ai", "genai-prices": "mistral", "models.dev": "mistral" },
  // https://docs.x.ai/docs/models
  { host: "api.x.ai", "genai-prices": "x-ai", "models.dev": "xai" },
  // https://www.together.ai/pricing: two hosts, one API.
  { host: "api.together.xyz", "genai-prices": "together", "models.dev": "togetherai" },
  { host: "api.together.ai", "genai-prices": "together", "models.dev": "togetherai" },
  // https://fireworks.ai/pricing
  { host: "api.fireworks.ai", "genai-prices": "fireworks", "models.dev": "fireworks-ai" },
  // https://openrouter.ai/models
  { host: "openrouter.ai", "genai-prices": "openrouter", "models.dev": "openrouter" },
  // https://platform.moonshot.ai/docs/pricing
  { host: "api.moonshot.ai", "genai-prices": "moonshotai", "models.dev": "moonshotai" },
  // https://platform.moonshot.cn/docs/pricing: billed in yuan, which genai-prices does not have.
  { host: "api.moonshot.cn", "models.dev": "moonshotai-cn" },
  // https://docs.z.ai/guides/overview/pricing
  { host: "api.z.ai", "genai-prices": "zai", "models.dev": "zai" },
  // https://open.bigmodel.cn/pricing
  { host: "open.bigmodel.cn", "genai-prices": "zhipuai", "models.dev": "zhipuai" },
  // https://www.cerebras.ai/pricing
  { host: "api.cerebras.ai", "genai-prices": "cerebras", "models.dev": "cerebras" },
  // https://docs.perplexity.ai/getting-started/pricing
  { host: "api.perplexity.ai", "genai-prices": "perplexity", "models.dev": "perplexity" },
  // https://cohere.com/pricing: the compatible API is on the older host.
  { host: "api.cohere.ai", "genai-prices": "cohere", "models.dev": "cohere" },
  { host: "api.cohere.com", "genai-prices": "cohere", "models.dev": "cohere" },
  // https://novita.ai/pricing
  { host: "api.novita.ai", "genai-prices": "novita", "models.dev": "novita-ai" },
  // https://www.baseten.co/pricing
  { host: "inference.baseten.co", "genai-prices": "baseten", "models.dev": "baseten" },
  // https://platform.minimax.io/docs/pricing
  { host: "api.minimax.io", "genai-prices": "minimax", "models.dev": "minimax" },
  // https://www.siliconflow.com/pricing
  { host: "api.siliconflow.com", "models.dev": "siliconflow" },
  // https://siliconflow.cn/pricing
  { host: "api.siliconflow.cn", "models.dev": "siliconflow-cn" },
  // https://deepinfra.com/pricing
  { host: "api.deepinfra.com", "models.dev": "deepinfra" },
];

/** The members of a vendor that identify it in price lists. */
export type ListedVendor = Pick<VendorConfig, "name" | "kind" | "baseUrl">;

/** A vendor in a price list. */
interface Provider {
  /** The list's name of it. */
  readonly id: string;
  /**
   * Assumption by which the price was found, for the operator to check. Absent if there is none.
   */
  readonly assumption?: string;
}

/**
 * Finds the provider of a price list that matches a vendor: by the host of its address, else by its
 * kind.
 *
 * @throws PriceRefusal if the list does not have it, or if host and kind leave it open
 */
export function providerOf(vendor: ListedVendor, format: SourceFormat): Provider {
  const host = URL.parse(vendor.baseUrl)?.hostname ?? "";
  const known = providerRows.find((row) => isHost(row, host));
  const id = (known ?? providerRows.find(({ kind }) => kind === vendor.kind))?.[format];
  if (id !== undefined) {
    const assumption = `${host} charges what ${id} does, as its kind is ${vendor.kind}`;
    return known === undefined ? { id, assumption } : { id };
  }
  const at = host === "" ? "" : ` at ${host}`;
  throw new PriceRefusal(
    "missing",
    `${format} has no provider for vendor ${vendor.name} (${vendor.kind}${at})`,
    "write the cost by hand, from the vendor's price page",
  );
}

function isHost(row: ProviderRow, host: string): boolean {
  return row.host.startsWith(".") ? host.endsWith(row.host) : host === row.host;
}
