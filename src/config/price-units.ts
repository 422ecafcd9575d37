/**
 * The units of prices, one row each: what a unit counts, how it is held and read from replies, and
 * its names. The schema of `uas.yaml`, stored prices, messages, receipts, records, imports and the
 * command line derive from this table.
 */
import { PriceUnit as UnitWord } from "../../gen/uas/billing/v1/receipt_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { PriceConfig, TokenPrices } from "./config.ts";

/** A unit as `PriceConfig` names it. */
export type UnitKey = Exclude<
  keyof PriceConfig,
  "tiers" | "images" | "serviceTiers" | "serviceTier"
>;

/** The members of a usage for units that few calls use: records keep them in one column. */
export type RareUsage = keyof Pick<
  Usage,
  | "cacheWrite1hTokens"
  | "cacheWrite12hTokens"
  | "audioInputTokens"
  | "audioOutputTokens"
  | "imageOutputTokens"
  | "characters"
  | "searches"
  | "webSearches"
  | "webFetches"
  | "codeExecutions"
  | "fileSearches"
  | "storedTokenHours"
>;

/** Quantities of units that few calls use. Absent if there is none. */
export type RareQuantities = { readonly [Member in RareUsage]?: number | undefined };

/** The quantities of tokens that prices are for. */
type TokenQuantity = "1M tokens" | "1M token-hours";

/** A unit of a price. */
export interface PriceUnit<Key extends UnitKey = UnitKey> {
  readonly key: Key;
  /** Its name in `uas.yaml`; `tools.web_search` is `web_search` in the map `tools`. */
  readonly name: string;
  /** Its name in the contract. */
  readonly word: UnitWord;
  /** Quantity that its price is for. */
  readonly per: TokenQuantity | "image" | "second" | "character" | "search" | "request" | "call";
  /**
   * The unit whose price applies if this one has none. If undefined, the unit is then not charged.
   */
  readonly whole?: "input" | "output";
  /** The model types that can have it. Default: all. */
  readonly types?: readonly ModelType[];
  /** The member of a usage that counts it, for units that few calls use. */
  readonly usage?: RareUsage;
  /**
   * Its meaning, how it is held, and where vendors report it: the rows of the table in
   * docs/money.md.
   */
  readonly counts: string;
  readonly held: string;
  readonly reported: string;
}

const generating = [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO];
const text = [ModelType.TEXT];

const asInput = "as `input`";
const asTool = "the bound of calls of the tool";

/** All units, in the order of a receipt and of stored prices. */
export const priceUnits: readonly PriceUnit[] = [
  {
    key: "input",
    name: "input",
    word: UnitWord.INPUT,
    per: "1M tokens",
    counts: "input tokens that no other unit of input counts",
    held: "all input tokens, at the highest price of input",
    reported: "`input_tokens`, `prompt_tokens`, `promptTokenCount`",
  },
  {
    key: "cachedInput",
    name: "cached_input",
    word: UnitWord.CACHED_INPUT,
    per: "1M tokens",
    whole: "input",
    types: generating,
    counts: "input tokens read from the cache",
    held: asInput,
    reported:
      "`cached_tokens`, also beside the details; `prompt_cache_hit_tokens`, `cache_read_input_tokens`, `cachedContentTokenCount`",
  },
  {
    key: "cacheWrite",
    name: "cache_write",
    word: UnitWord.CACHE_WRITE,
    per: "1M tokens",
    whole: "input",
    types: generating,
    counts: "input tokens written to the cache, without those of the next two units",
    held: asInput,
    reported:
      "`cache_write_tokens`, `cached_creation_tokens`, `cache_creation_tokens`, `cache_creation_input_tokens`",
  },
  {
    key: "cacheWrite1h",
    name: "cache_write_1h",
    word: UnitWord.CACHE_WRITE_1H,
    per: "1M tokens",
    types: generating,
    usage: "cacheWrite1hTokens",
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
    counts: "input tokens of audio that were not read from the cache",
    held: "as `input`, in requests with audio or video",
    reported: "`prompt_tokens_details.audio_tokens`, `promptTokensDetails` of `AUDIO`",
  },
  {
    key: "cacheStorage",
    name: "cache_storage",
    word: UnitWord.CACHE_STORAGE,
    per: "1M token-hours",
    types: text,
    usage: "storedTokenHours",
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
    counts: "output tokens that no other unit of output counts",
    held: "the limit of the call, at the highest price of output",
    reported: "`output_tokens`, `completion_tokens`, `candidatesTokenCount`",
  },
  {
    key: "reasoning",
    name: "reasoning",
    word: UnitWord.REASONING,
    per: "1M tokens",
    whole: "output",
    types: generating,
    counts: "output tokens spent on reasoning",
    held: "as `output`",
    reported: "`reasoning_tokens`, `thinking_tokens`, `thoughtsTokenCount`",
  },
  {
    key: "audioOutput",
    name: "audio_output",
    word: UnitWord.AUDIO_OUTPUT,
    per: "1M tokens",
    types: text,
    usage: "audioOutputTokens",
    counts: "output tokens of audio",
    held: "as `output`, in requests for audio",
    reported: "`completion_tokens_details.audio_tokens`, `candidatesTokensDetails` of `AUDIO`",
  },
  {
    key: "imageOutput",
    name: "image_output",
    word: UnitWord.IMAGE_OUTPUT,
    per: "1M tokens",
    whole: "output",
    types: [ModelType.TEXT, ModelType.IMAGE],
    usage: "imageOutputTokens",
    counts: "output tokens of images",
    held: "as `output`, in requests for images",
    reported: "`completion_tokens_details.image_tokens`, `candidatesTokensDetails` of `IMAGE`",
  },
  {
    key: "image",
    name: "image",
    word: UnitWord.IMAGE,
    per: "image",
    types: [ModelType.IMAGE],
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
    counts: "seconds of video or audio, to the microsecond",
    held: "the length requested, or the longest that is usual",
    reported: "the length of the file, or the vendor's figure",
  },
  {
    key: "character",
    name: "character",
    word: UnitWord.CHARACTER,
    per: "character",
    types: [ModelType.AUDIO],
    usage: "characters",
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
    counts: "searches of the web that the vendor ran",
    held: asTool,
    reported:
      "`server_tool_use.web_search_requests`, `tool_usage.web_search.num_requests`, else `web_search_call` items that search; the counts of xAI and Perplexity in `usage`, `webSearchQueries`; one for a chat completion that asks for searches and reports none",
  },
  {
    key: "webFetch",
    name: "tools.web_fetch",
    word: UnitWord.WEB_FETCH,
    per: "call",
    types: text,
    usage: "webFetches",
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
    counts: "searches of files that the vendor stores",
    held: asTool,
    reported: "`file_search_call` items",
  },
  {
    key: "request",
    name: "request",
    word: UnitWord.REQUEST,
    per: "request",
    counts: "the call itself",
    held: "once",
    reported: "–",
  },
];

/** The units whose prices are per 1,000,000 tokens: only they can have tiers. */
export const tokenUnits = priceUnits.filter(
  (unit): unit is PriceUnit<keyof TokenPrices> => unit.per === "1M tokens",
);

/** The units that few calls use, each with the member of a usage that counts it. */
export const rareUnits: readonly (PriceUnit & { readonly usage: RareUsage })[] = priceUnits.filter(
  (unit): unit is PriceUnit & { readonly usage: RareUsage } => unit.usage !== undefined,
);

/** Whether a unit is tokens. */
export function isTokenUnit(key: UnitKey): key is keyof TokenPrices {
  return tokenUnits.some((unit) => unit.key === key);
}

/** Whether the price of a unit is for a million: of tokens, or of tokens stored for an hour. */
export function isPerMillion(key: UnitKey): boolean {
  return isTokenUnit(key) || key === "cacheStorage";
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
