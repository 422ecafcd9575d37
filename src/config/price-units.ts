/**
 * The units of prices, one row each. The schema of `uas.yaml`, stored prices, messages, receipts,
 * call records, price imports, the command line and the console derive from this table.
 */
import { PriceUnit as UnitWord } from "../../gen/uas/billing/v1/receipt_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";

const generating = [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO];
const text = [ModelType.TEXT];

const asInput = "as `input`";
const asTool = "the bound of calls of the tool";

/**
 * All units, in the order of a receipt and of stored prices. {@link UnitRow} explains the members.
 */
const units = [
  {
    key: "input",
    name: "input",
    word: UnitWord.INPUT,
    per: "1M tokens",
    label: { en: "Input tokens", zh: "输入 Token" },
    counts: "input tokens that no other unit of input counts",
    held: "all input tokens, at the highest price of input",
    reported: "`input_tokens`, `prompt_tokens`, `promptTokenCount`",
    listed: { "genai-prices": { input_mtok: 1 }, "models.dev": { input: 1 } },
  },
  {
    key: "cachedInput",
    name: "cached_input",
    word: UnitWord.CACHED_INPUT,
    per: "1M tokens",
    whole: "input",
    types: generating,
    label: { en: "Cached input tokens", zh: "缓存输入 Token" },
    counts: "input tokens read from the cache",
    held: asInput,
    reported:
      "`cached_tokens`, also beside the details; `prompt_cache_hit_tokens`, `cache_read_input_tokens`, `cachedContentTokenCount`",
    listed: { "genai-prices": { cache_read_mtok: 1 }, "models.dev": { cache_read: 1 } },
  },
  {
    key: "cacheWrite",
    name: "cache_write",
    word: UnitWord.CACHE_WRITE,
    per: "1M tokens",
    whole: "input",
    types: generating,
    label: { en: "Cache writes", zh: "缓存写入" },
    counts: "input tokens written to the cache, without those of the next two units",
    held: asInput,
    reported:
      "`cache_write_tokens`, `cached_creation_tokens`, `cache_creation_tokens`, `cache_creation_input_tokens`",
    listed: { "genai-prices": { cache_write_mtok: 1 }, "models.dev": { cache_write: 1 } },
  },
  {
    key: "cacheWrite1h",
    name: "cache_write_1h",
    word: UnitWord.CACHE_WRITE_1H,
    per: "1M tokens",
    types: generating,
    usage: "cacheWrite1hTokens",
    label: { en: "Cache writes, 1 hour", zh: "缓存写入（1 小时）" },
    counts: "input tokens written to the cache for an hour",
    held: asInput,
    reported: "`cache_creation.ephemeral_1h_input_tokens`",
  },
  {
    key: "cacheWrite12h",
    name: "cache_write_12h",
    word: UnitWord.CACHE_WRITE_12H,
    per: "1M tokens",
    types: generating,
    usage: "cacheWrite12hTokens",
    label: { en: "Cache writes, 12 hours", zh: "缓存写入（12 小时）" },
    counts: "input tokens written to the cache for twelve hours",
    held: asInput,
    reported: "`cache_write_tokens_details.ttl_12h_tokens`",
  },
  {
    key: "audioInput",
    name: "audio_input",
    word: UnitWord.AUDIO_INPUT,
    per: "1M tokens",
    types: text,
    usage: "audioInputTokens",
    label: { en: "Audio input tokens", zh: "音频输入 Token" },
    counts: "input tokens of audio that were not read from the cache",
    held: "as `input`, in requests with audio or video",
    reported: "`prompt_tokens_details.audio_tokens`, `promptTokensDetails` of `AUDIO`",
    listed: { "genai-prices": { input_audio_mtok: 1 }, "models.dev": { input_audio: 1 } },
  },
  {
    key: "cacheStorage",
    name: "cache_storage",
    word: UnitWord.CACHE_STORAGE,
    per: "1M token-hours",
    types: text,
    usage: "storedTokenHours",
    label: { en: "Cache storage", zh: "缓存存储" },
    counts: "tokens in a [prompt cache](native.md#prompt-caches) × the hours paid for, rounded up",
    held: "all input tokens, for the time asked for",
    reported: "`totalTokenCount`, `expireTime`",
  },
  {
    key: "output",
    name: "output",
    word: UnitWord.OUTPUT,
    per: "1M tokens",
    types: generating,
    label: { en: "Output tokens", zh: "输出 Token" },
    counts: "output tokens that no other unit of output counts",
    held: "the limit of the call, at the highest price of output",
    reported: "`output_tokens`, `completion_tokens`, `candidatesTokenCount`",
    listed: { "genai-prices": { output_mtok: 1 }, "models.dev": { output: 1 } },
  },
  {
    key: "reasoning",
    name: "reasoning",
    word: UnitWord.REASONING,
    per: "1M tokens",
    whole: "output",
    types: generating,
    label: { en: "Reasoning tokens", zh: "推理 Token" },
    counts: "output tokens spent on reasoning",
    held: "as `output`",
    reported: "`reasoning_tokens`, `thinking_tokens`, `thoughtsTokenCount`",
    listed: { "genai-prices": { output_reasoning_mtok: 1 }, "models.dev": { reasoning: 1 } },
  },
  {
    key: "audioOutput",
    name: "audio_output",
    word: UnitWord.AUDIO_OUTPUT,
    per: "1M tokens",
    types: text,
    usage: "audioOutputTokens",
    label: { en: "Audio output tokens", zh: "音频输出 Token" },
    counts: "output tokens of audio",
    held: "as `output`, in requests for audio",
    reported: "`completion_tokens_details.audio_tokens`, `candidatesTokensDetails` of `AUDIO`",
    listed: { "genai-prices": { output_audio_mtok: 1 }, "models.dev": { output_audio: 1 } },
  },
  {
    key: "imageOutput",
    name: "image_output",
    word: UnitWord.IMAGE_OUTPUT,
    per: "1M tokens",
    whole: "output",
    types: [ModelType.TEXT, ModelType.IMAGE],
    usage: "imageOutputTokens",
    label: { en: "Image output tokens", zh: "图片输出 Token" },
    counts: "output tokens of images",
    held: "as `output`, in requests for images",
    reported: "`completion_tokens_details.image_tokens`, `candidatesTokensDetails` of `IMAGE`",
    listed: { "genai-prices": { output_image_mtok: 1 } },
  },
  {
    key: "image",
    name: "image",
    word: UnitWord.IMAGE,
    per: "image",
    types: [ModelType.IMAGE],
    label: { en: "Images", zh: "图片" },
    counts: "images; a price can depend on their size and quality",
    held: "as many as requested, at the highest price that the requested size and quality can have",
    reported: "the images of the reply, with `size` and `quality` where it has them",
  },
  {
    key: "second",
    name: "second",
    word: UnitWord.SECOND,
    per: "second",
    types: [ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO],
    label: { en: "Seconds", zh: "秒数" },
    counts: "seconds of video or audio, to the microsecond",
    held: "the length requested, or the longest that is usual",
    reported: "the length of the file, or the vendor's figure",
    listed: {
      "genai-prices": {
        audio_hours: 3_600,
        input_audio_hours: 3_600,
        output_audio_hours: 3_600,
      },
    },
  },
  {
    key: "character",
    name: "character",
    word: UnitWord.CHARACTER,
    per: "character",
    types: [ModelType.AUDIO],
    usage: "characters",
    label: { en: "Characters", zh: "字符" },
    counts: "characters of the text to speak (Unicode code points)",
    held: "the characters of the request",
    reported: "the request",
  },
  {
    key: "search",
    name: "search",
    word: UnitWord.SEARCH,
    per: "search",
    types: [ModelType.RERANK],
    usage: "searches",
    label: { en: "Rerank searches", zh: "重排序搜索" },
    counts: "searches of a rerank call",
    held: "one for each 100 documents",
    reported: "`meta.billed_units.search_units`",
  },
  {
    key: "webSearch",
    name: "tools.web_search",
    word: UnitWord.WEB_SEARCH,
    per: "call",
    types: text,
    usage: "webSearches",
    label: { en: "Web searches", zh: "联网搜索" },
    counts: "searches of the web that the vendor ran",
    held: asTool,
    reported:
      "`server_tool_use.web_search_requests`, `tool_usage.web_search.num_requests`, else `web_search_call` items that search; the counts of xAI and Perplexity in `usage`, `webSearchQueries`; one for a chat completion that asks for searches and reports none",
    listed: { "genai-prices": { web_searches_kcount: 1_000 } },
  },
  {
    key: "webFetch",
    name: "tools.web_fetch",
    word: UnitWord.WEB_FETCH,
    per: "call",
    types: text,
    usage: "webFetches",
    label: { en: "Web pages", zh: "网页抓取" },
    counts: "pages that the vendor fetched",
    held: asTool,
    reported: "`server_tool_use.web_fetch_requests`, `urlContextMetadata`",
  },
  {
    key: "codeExecution",
    name: "tools.code_execution",
    word: UnitWord.CODE_EXECUTION,
    per: "call",
    types: text,
    usage: "codeExecutions",
    label: { en: "Code runs", zh: "代码执行" },
    counts: "runs of code in the vendor's containers",
    held: asTool,
    reported:
      "`code_interpreter_call` and `shell_call` items, `server_tool_use` blocks of code execution, `executableCode` parts",
  },
  {
    key: "fileSearch",
    name: "tools.file_search",
    word: UnitWord.FILE_SEARCH,
    per: "call",
    types: text,
    usage: "fileSearches",
    label: { en: "File searches", zh: "文件搜索" },
    counts: "searches of files that the vendor stores",
    held: asTool,
    reported: "`file_search_call` items",
    listed: { "genai-prices": { storage_searches_kcount: 1_000 } },
  },
  {
    key: "request",
    name: "request",
    word: UnitWord.REQUEST,
    per: "request",
    label: { en: "Request", zh: "请求" },
    counts: "the call itself",
    held: "once",
    reported: "–",
    listed: { "genai-prices": { requests_kcount: 1_000 } },
  },
] as const satisfies readonly UnitRow[];

/** A row of the table. */
interface UnitRow {
  /** The member of `PriceConfig` and of the contract's `Price`. */
  readonly key: string;
  /** Its name in `uas.yaml`; `tools.web_search` is `web_search` in the map `tools`. */
  readonly name: string;
  /** Its name in the contract. */
  readonly word: UnitWord;
  /** Quantity that its price is for. */
  readonly per:
    | "1M tokens"
    | "1M token-hours"
    | "image"
    | "second"
    | "character"
    | "search"
    | "request"
    | "call";
  /** The unit whose price applies if this one has none. If absent, the unit is then not charged. */
  readonly whole?: "input" | "output";
  /** The model types that can have it. Default: all. */
  readonly types?: readonly ModelType[];
  /**
   * The member of a usage that counts it, for units that few calls use. Call records keep them in
   * one column.
   */
  readonly usage?: keyof Usage;
  /**
   * Its meaning, how it is held, and where vendors report it: the row of the generated page
   * docs/reference/price-units.md.
   */
  readonly counts: string;
  readonly held: string;
  readonly reported: string;
  /** Its name in the console. */
  readonly label: { readonly en: string; readonly zh: string };
  /**
   * The fields of price lists that have its price, with the quantity that their price is for. For
   * tokens the quantity is 1, because the lists also have prices per million. The names are from
   * `units` in `@pydantic/genai-prices` and `cost` in the schema of models.dev. A field in no row
   * is reported as not imported.
   */
  readonly listed?: { readonly [List in PriceList]?: Readonly<Record<string, number>> };
}

/** A public price list. */
export type PriceList = "genai-prices" | "models.dev";

type Row = (typeof units)[number];

/** A unit as `PriceConfig` names it. */
export type UnitKey = Row["key"];

/** A unit whose price is per 1,000,000 tokens. */
export type TokenUnitKey = Extract<Row, { readonly per: "1M tokens" }>["key"];

/** The members of a usage for units that few calls use. */
export type RareUsage = Extract<Row, { readonly usage: string }>["usage"];

/** Quantities of units that few calls use. Absent if there is none. */
export type RareQuantities = { readonly [Member in RareUsage]?: number | undefined };

/** A unit of a price. */
export interface PriceUnit<Key extends UnitKey = UnitKey> extends UnitRow {
  readonly key: Key;
  readonly usage?: RareUsage;
}

/** All units, in the order of a receipt and of stored prices. */
export const priceUnits: readonly PriceUnit[] = units;

/** The units whose prices are per 1,000,000 tokens: only they can have tiers. */
export const tokenUnits = priceUnits.filter(
  (unit): unit is PriceUnit<TokenUnitKey> => unit.per === "1M tokens",
);

/** The units that few calls use, each with the member of a usage that counts it. */
export const rareUnits: readonly (PriceUnit & { readonly usage: RareUsage })[] = priceUnits.filter(
  (unit): unit is PriceUnit & { readonly usage: RareUsage } => unit.usage !== undefined,
);

/** Whether a unit is tokens. */
export function isTokenUnit(key: UnitKey): key is TokenUnitKey {
  return tokenUnits.some((unit) => unit.key === key);
}

/** Whether the price of a unit is for a million: of tokens, or of tokens stored for an hour. */
export function isPerMillion(key: UnitKey): boolean {
  return priceUnits.some((unit) => unit.key === key && unit.per.startsWith("1M "));
}

/** The units that a model of a type can be charged by. */
export function unitsOfType(type: ModelType): readonly PriceUnit[] {
  return priceUnits.filter(({ types }) => types === undefined || types.includes(type));
}

/** The quantities of a usage that few calls have. */
export function rareQuantitiesOf(usage: RareQuantities): RareQuantities {
  const quantities: { [Member in RareUsage]?: number } = {};
  for (const { usage: member } of rareUnits) {
    const quantity = usage[member] ?? 0;
    if (quantity > 0) quantities[member] = quantity;
  }
  return quantities;
}
