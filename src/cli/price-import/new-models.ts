/** Writes the models of a vendor from a price list: routes, costs, and prices with a margin. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { DatedPrice } from "../../config/config.ts";
import { pricesWithMargin } from "./customer-prices.ts";
import type { MarginPpm } from "./decimal.ts";
import { readQuote } from "./quote.ts";
import { type ModelFacts, PriceRefusal, type PriceSource } from "./source.ts";
import { type ListedVendor, providerOf } from "./vendor-names.ts";

/** Options of {@link newModels}. */
export interface NewModelsOptions {
  readonly source: PriceSource;
  readonly marginPpm: MarginPpm;
  /** The vendor's names of its models. Default: the names in the price list. */
  readonly names?: readonly string[] | undefined;
  /** `max_output_tokens` of models whose limit is not in the list. Default: a low one. */
  readonly maxOutputTokens?: number | undefined;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** A model to write. */
export interface NewModel {
  /** The vendor's name of it, which customers use as well. */
  readonly name: string;
  readonly type: ModelType;
  readonly costs: readonly DatedPrice[];
  readonly prices: readonly DatedPrice[];
  /** Undefined for other types than text. */
  readonly maxOutputTokens: number | undefined;
  readonly isReasoning: boolean;
  readonly maxContext: number | undefined;
}

/** The models of a vendor, and those that are not written. */
export interface NewModels {
  readonly vendor: string;
  readonly source: PriceSource;
  readonly marginPpm: MarginPpm;
  /** Whether the names come from the vendor, else from the price list. */
  readonly isOfVendor: boolean;
  readonly models: readonly NewModel[];
  readonly leftOut: readonly LeftOut[];
}

/** A model that is not written. */
export interface LeftOut {
  readonly name: string;
  readonly reason: string;
}

/**
 * Finds the text and embedding models of a vendor in a price list.
 *
 * @throws PriceRefusal if the list does not have the vendor
 */
export function newModels(vendor: ListedVendor, options: NewModelsOptions): NewModels {
  const { source, marginPpm } = options;
  const { id } = providerOf(vendor, source.format);
  const names = undated(options.names ?? source.names(id));
  const models: NewModel[] = [];
  const leftOut: LeftOut[] = [];
  for (const name of names.toSorted()) {
    const found = newModel(name, id, options);
    if ("reason" in found) leftOut.push(found);
    else models.push(found);
  }
  const isOfVendor = options.names !== undefined;
  return { vendor: vendor.name, source, marginPpm, isOfVendor, models, leftOut };
}

/** Without versions such as `gpt-5-mini-2025-08-07`, if the name without the date is there too. */
function undated(names: readonly string[]): readonly string[] {
  const all = new Set(names);
  return [...all].filter((name) => {
    const stem = name.replace(/-(\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$/, "");
    return stem === name || !all.has(stem);
  });
}

function newModel(
  name: string,
  provider: string,
  { source, marginPpm, maxOutputTokens, nowMs }: NewModelsOptions,
): NewModel | LeftOut {
  try {
    const entry = source.find(provider, name);
    if (entry === undefined) return { name, reason: "not in the price list" };
    const { facts = {} } = entry;
    const type = typeOf(name, facts);
    if (type === undefined) return { name, reason: "not a text or embedding model" };
    const { prices: costs, free } = readQuote(entry, { format: source.format, type, nowMs });
    if (free.length > 0) return { name, reason: `free of charge: ${free.join(", ")}` };
    const isText = type === ModelType.TEXT;
    return {
      name,
      type,
      costs,
      prices: pricesWithMargin([costs], marginPpm),
      maxOutputTokens: isText ? outputLimit(facts, maxOutputTokens) : undefined,
      isReasoning: isText && facts.isReasoning === true,
      maxContext: isText ? facts.contextTokens : undefined,
    };
  } catch (error) {
    if (!(error instanceof PriceRefusal)) throw error;
    return { name, reason: error.message };
  }
}

/** Words in names of models that do not chat. Price lists of genai-prices have no types. */
const otherModels =
  /image|audio|tts|whisper|transcribe|realtime|live|omni|voxtral|moderation|guard|ocr|rerank|video|veo|imagen|sora|dall-e|computer-use|^ft:|instruct$|davinci|babbage|curie|^ada$|^text-/;

function typeOf(name: string, { isText }: ModelFacts): ModelType | undefined {
  if (/embed/.test(name)) return ModelType.EMBEDDING;
  if (isText === false || otherModels.test(name)) return undefined;
  return ModelType.TEXT;
}

/**
 * A limit that no vendor refuses: every text model with a context of more than 128,000 tokens can
 * write 8,192, all others 4,096.
 */
export function outputLimit(
  { maxOutputTokens, contextTokens = 0 }: ModelFacts,
  given: number | undefined,
): number {
  return maxOutputTokens ?? given ?? (contextTokens > 128_000 ? 8_192 : 4_096);
}
