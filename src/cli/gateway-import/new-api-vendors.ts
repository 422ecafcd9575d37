/** Vendors by the types of new-api's channels. */

/** A vendor of new-api. */
export interface NewApiVendor {
  readonly preset?: string;
  readonly kind?: string;
  /** The address, without {@link path}, if it is not that of the preset. */
  readonly baseUrl?: string;
  /** The end of the address that new-api leaves out. */
  readonly path?: string;
}

const compatible = (baseUrl: string, path: string): NewApiVendor => ({
  kind: "openai-compatible",
  baseUrl,
  path,
});

/** By type, the number in the column `type`. */
export const newApiVendors: ReadonlyMap<number, NewApiVendor> = new Map<number, NewApiVendor>([
  [1, { preset: "openai", path: "/v1" }],
  [3, { preset: "azure-openai" }],
  [4, { preset: "ollama", path: "/v1" }],
  [6, compatible("https://api.openaimax.com", "/v1")],
  [7, compatible("https://api.ohmygpt.com", "/v1")],
  [14, { preset: "anthropic" }],
  [17, { preset: "dashscope" }],
  [19, compatible("https://api.360.cn", "/v1")],
  [20, { preset: "openrouter", path: "/v1" }],
  [24, { preset: "gemini" }],
  [25, compatible("https://api.moonshot.cn", "/v1")],
  [26, compatible("https://open.bigmodel.cn", "/api/paas/v4")],
  [27, { preset: "perplexity" }],
  [31, compatible("https://api.lingyiwanwu.com", "/v1")],
  [34, { preset: "cohere" }],
  [38, { preset: "jina", path: "/v1" }],
  [40, compatible("https://api.siliconflow.cn", "/v1")],
  [42, { preset: "mistral", path: "/v1" }],
  [43, { preset: "deepseek" }],
  [45, compatible("https://ark.cn-beijing.volces.com", "/api/v3")],
  [46, compatible("https://qianfan.baidubce.com", "/v2")],
  [47, { kind: "openai-compatible", path: "/v1" }],
  [48, { preset: "xai", path: "/v1" }],
  [56, { preset: "replicate" }],
]);
