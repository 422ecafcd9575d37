/** Reads what a price list has for a model into a price of ours, or refuses it. */
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { DatedPrice, PriceConfig, PriceTier, TokenPrices } from "../../config/config.ts";
import { modelTypeWord } from "../../config/kinds.ts";
import {
  isTokenUnit,
  type PriceUnit,
  priceUnits,
  type UnitKey,
  unitsOfType,
} from "../../config/price-units.ts";
import { amountNanosMax } from "../../core/money.ts";
import { upcoming } from "../../config/price-dates.ts";
import { namesUnit, tierLimits, unitPrice } from "../../config/unit-prices.ts";
import { nanosEach, parseDecimal } from "./decimal.ts";
import {
  PriceRefusal,
  type SourceBand,
  type SourceEntry,
  type SourceFormat,
  type SourcePrice,
} from "./source.ts";

/** The price of a model in a price list. */
export interface Quote {
  /** The current price and announced later ones. */
  readonly prices: readonly DatedPrice[];
  /** Fields of the list that no unit of ours can say: `cache_audio_read_mtok 0.3`. */
  readonly notImported: readonly string[];
  /** Fields that had to be rounded up to a nano-USD: `audio_hours 0.111`. */
  readonly roundedUp: readonly string[];
  /** Units that the list names as free of charge. */
  readonly free: readonly string[];
}

/** Options of reading a quote. */
interface QuoteOptions {
  readonly format: SourceFormat;
  readonly type: ModelType;
  /** Milliseconds since 1970: prices that have ended by then are left out. */
  readonly nowMs: number;
}

/** Findings while the fields are read. */
interface Notes {
  readonly notImported: Set<string>;
  readonly roundedUp: Set<string>;
}

/**
 * Reads the prices of an entry.
 *
 * @throws PriceRefusal if a price is missing, negative, no number, too large or contradicts another
 * one
 */
export function readQuote(entry: SourceEntry, options: QuoteOptions): Quote {
  const notes: Notes = { notImported: new Set(), roundedUp: new Set() };
  const { nowMs } = options;
  const current = entry.prices.findLast(({ fromMs }) => fromMs <= nowMs) ?? entry.prices[0];
  const counting = entry.prices.filter((each) => each === current || each.fromMs > nowMs);
  const dated = counting.map((each) => readPrice(entry.name, each, { options, notes }));
  const prices = upcoming(dated, nowMs);
  return {
    prices,
    notImported: [...notes.notImported],
    roundedUp: [...notes.roundedUp],
    free: freeUnits(prices.map(({ price }) => price)),
  };
}

interface Reading {
  readonly options: QuoteOptions;
  readonly notes: Notes;
}

function readPrice(name: string, { fromMs, bands }: SourcePrice, reading: Reading): DatedPrice {
  const [base = emptyPrice(), ...tiers] = bands.map((band) => readBand(name, band, reading));
  const price: PriceConfig = {
    ...base,
    ...(tiers.length > 0 && {
      tiers: tiers.map((tier, index) => asTier(tier, bands[index + 1]?.above ?? 0)),
    }),
  };
  const missing = missingUnit(reading.options.type, price);
  if (missing === undefined) return { fromMs, price };
  const reason = `${name} has no price for ${missing}, which a ${modelTypeWord(reading.options.type)} model needs`;
  throw new PriceRefusal("missing", reason, "write the cost by hand");
}

type Band = Record<UnitKey, bigint | undefined>;

function emptyPrice(): Band {
  return Object.fromEntries(priceUnits.map(({ key }) => [key, undefined])) as Band;
}

function readBand(name: string, { above, fields }: SourceBand, { options, notes }: Reading): Band {
  const band = emptyPrice();
  for (const [field, value] of fields) {
    const unit = unitOfField(options.format, field);
    const written = typeof value === "string" ? `${field} ${value}` : field;
    if (unit === undefined || !hasUnit(options.type, unit.key)) {
      // A price that longer calls also have is reported once.
      const isTold = notes.notImported.has(written);
      if (!isTold)
        notes.notImported.add(above === 0 ? written : `${written} above ${above} tokens`);
      continue;
    }
    const { nanos, isRounded } = readNanos(`${name}: ${field}`, value, unit.count);
    if (isRounded) notes.roundedUp.add(written);
    const other = band[unit.key];
    if (other !== undefined && other !== nanos) {
      const reason = `${name} has two prices for the unit ${unit.key}, one of them ${field}`;
      throw new PriceRefusal("conflicting", reason, "write the cost by hand");
    }
    band[unit.key] = nanos;
  }
  return band;
}

function hasUnit(type: ModelType, key: UnitKey): boolean {
  return unitsOfType(type).some((unit) => unit.key === key);
}

function readNanos(
  where: string,
  value: unknown,
  count: bigint,
): { nanos: bigint; isRounded: boolean } {
  const parsed = typeof value === "string" ? parseDecimal(value) : undefined;
  const shown =
    typeof value === "string" ? value || "empty" : (JSON.stringify(value) ?? "left out");
  const remedy = "write the cost by hand, from the vendor's price page";
  if (parsed === undefined) {
    throw new PriceRefusal("refused", `${where} is ${shown}, which is not a number`, remedy);
  }
  if (parsed === "negative") {
    throw new PriceRefusal("refused", `${where} is ${shown}, less than zero`, remedy);
  }
  const read = nanosEach(parsed, count);
  if (read.nanos <= amountNanosMax) return read;
  throw new PriceRefusal("refused", `${where} is ${shown}, too much for a price`, remedy);
}

function asTier(band: Band, above: number): PriceTier {
  const tokens = Object.entries(band).filter(([key]) => isTokenUnit(key as UnitKey));
  return { above, ...(Object.fromEntries(tokens) as unknown as TokenPrices) };
}

/** Of each type, the units of which a price needs one, and their words. */
const neededUnits: ReadonlyMap<ModelType, readonly [words: string, ...keys: UnitKey[]]> = new Map([
  [ModelType.EMBEDDING, ["input or requests", "input", "request"]],
  [ModelType.RERANK, ["searches, input or requests", "search", "input", "request"]],
  [ModelType.MODERATION, ["input or requests", "input", "request"]],
]);

const neededUsually = [
  "images, seconds, requests or output",
  "image",
  "second",
  "request",
  "output",
] as const;

/** A unit that a model of the type needs and the price does not have, in words. */
function missingUnit(type: ModelType, price: PriceConfig): string | undefined {
  if (type === ModelType.TEXT) {
    if (price.input === undefined) return "input";
    return price.output === undefined ? "output" : undefined;
  }
  const [words, ...keys] = neededUnits.get(type) ?? neededUsually;
  return keys.some((key) => price[key] !== undefined) ? undefined : words;
}

/** The units that any of the prices names as 0. */
function freeUnits(prices: readonly PriceConfig[]): readonly string[] {
  const isFree = (price: PriceConfig, unit: PriceUnit): boolean =>
    namesUnit(price, unit.key) &&
    tierLimits([price]).some((above) => unitPrice(price, unit, above) === 0n);
  return priceUnits
    .filter((unit) => prices.some((price) => isFree(price, unit)))
    .map(({ name }) => name);
}

/** The unit that a field of a price list is, and how many of it the price is for. */
interface FieldUnit {
  readonly key: UnitKey;
  readonly count: bigint;
}

/** Finds the unit of a field; `undefined` if our prices cannot say it. */
function unitOfField(format: SourceFormat, field: string): FieldUnit | undefined {
  for (const { key, listed } of priceUnits) {
    const fields = listed?.[format] ?? {};
    const count = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (count !== undefined) return { key, count: BigInt(count) };
  }
  return undefined;
}
