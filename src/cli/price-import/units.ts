/** The fields of price lists and the units of our prices that they are: a new unit is a row here. */
import type { UnitKey } from "../../config/price-units.ts";
import type { SourceFormat } from "./source.ts";

/** Field names, each with how many of our units its price is for. */
type Fields = Readonly<Record<string, bigint>>;

const none: Readonly<Record<SourceFormat, Fields>> = { "genai-prices": {}, "models.dev": {} };

/**
 * Tokens are priced per 1,000,000 here and there; images, seconds and requests each. A field without a row is
 * reported as not imported. Field names: the `units` of @pydantic/genai-prices (its README says what each suffix
 * counts), and `cost` in the schema of models.dev.
 */
const unitFields: Readonly<Record<UnitKey, Readonly<Record<SourceFormat, Fields>>>> = {
  input: { "genai-prices": { input_mtok: 1n }, "models.dev": { input: 1n } },
  cachedInput: { "genai-prices": { cache_read_mtok: 1n }, "models.dev": { cache_read: 1n } },
  cacheWrite: { "genai-prices": { cache_write_mtok: 1n }, "models.dev": { cache_write: 1n } },
  // Both lists have one price of cache writes, that of the shorter ones.
  cacheWrite1h: none,
  output: { "genai-prices": { output_mtok: 1n }, "models.dev": { output: 1n } },
  reasoning: { "genai-prices": { output_reasoning_mtok: 1n }, "models.dev": { reasoning: 1n } },
  audioInput: { "genai-prices": { input_audio_mtok: 1n }, "models.dev": { input_audio: 1n } },
  audioOutput: { "genai-prices": { output_audio_mtok: 1n }, "models.dev": { output_audio: 1n } },
  // Neither list has prices per image: genai-prices counts the tokens of images, or their pixels.
  image: none,
  second: {
    "genai-prices": { audio_hours: 3_600n, input_audio_hours: 3_600n, output_audio_hours: 3_600n },
    "models.dev": {},
  },
  // Neither list has prices of characters, rerank searches or other tools.
  character: none,
  search: none,
  webSearch: { "genai-prices": { web_searches_kcount: 1_000n }, "models.dev": {} },
  webFetch: none,
  codeExecution: none,
  fileSearch: { "genai-prices": { storage_searches_kcount: 1_000n }, "models.dev": {} },
  request: { "genai-prices": { requests_kcount: 1_000n }, "models.dev": {} },
};

/** The unit that a field of a price list is, and how many of it the price is for. */
export interface FieldUnit {
  readonly key: UnitKey;
  readonly count: bigint;
}

/** Finds the unit of a field; `undefined` where our prices cannot say it. */
export function unitOfField(format: SourceFormat, field: string): FieldUnit | undefined {
  for (const [key, fields] of Object.entries(unitFields)) {
    const count = Object.hasOwn(fields[format], field) ? fields[format][field] : undefined;
    if (count !== undefined) return { key: key as UnitKey, count };
  }
  return undefined;
}
