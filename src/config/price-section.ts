/** Reads the prices of a model, and the costs of its routes, which are written alike. */
import type { DatedPrice, PriceConfig, PriceTier, TokenPrices } from "./config.ts";
import {
  type Entry,
  type Fields,
  type Reader,
  fields,
  isList,
  items,
  report,
  required,
} from "./reader.ts";
import { moment, positive, usd } from "./values.ts";

const tokens = ["input", "cached_input", "cache_write", "output", "reasoning"] as const;
const keys = [...tokens, "image", "second", "request"] as const;
type PriceKey = (typeof keys)[number];
type PriceFields = Fields<PriceKey | "tiers" | "from">;

/** What a model of each type can be charged by, and what of it must be given. */
interface PriceRule {
  readonly allowed: readonly PriceKey[];
  /** All of these. */
  readonly needed: readonly PriceKey[];
  /** At least one of these, where there are any. */
  readonly anyOf: readonly PriceKey[];
  readonly example: string;
}

const rules: Readonly<Record<string, PriceRule>> = {
  TEXT: {
    allowed: [...tokens, "request"],
    needed: ["input", "output"],
    anyOf: [],
    example: 'price: { input: "0.25", output: "2.00" } in USD per 1,000,000 tokens',
  },
  IMAGE: {
    allowed: [...tokens, "image", "second", "request"],
    needed: [],
    anyOf: ["image", "second", "request", "output"],
    example: 'price: { image: "0.003" } in USD per picture',
  },
  VIDEO: timed(),
  AUDIO: timed(),
};

function timed(): PriceRule {
  return {
    allowed: [...tokens, "second", "request"],
    needed: [],
    anyOf: ["second", "request", "output"],
    example: 'price: { second: "0.40" } in USD per second',
  };
}

/** Why and how, for a model without a price. */
export function priceFix(type: string | undefined): string {
  return `add ${(rules[type ?? ""] ?? rules["TEXT"])?.example ?? "price"}`;
}

/**
 * Reads one price, or a list of them with the moments from which they count.
 *
 * @param type the model's type word; `undefined` where it is in error: then any unit passes
 * @returns by time; `undefined` where a moment is in error
 */
export function readPrices(
  reader: Reader,
  entry: Entry,
  type: string | undefined,
): readonly DatedPrice[] | undefined {
  if (!isList(entry)) {
    const given = fields(reader, entry, [...keys, "tiers"]);
    return [{ fromMs: -Infinity, price: readPrice(reader, entry, { given, type }) }];
  }
  const list = items(reader, entry, "prices");
  if (list.length === 0) report(reader, entry, "name at least one price");
  const found: DatedPrice[] = [];
  for (const item of list) {
    const given = fields(reader, item, ["from", ...keys, "tiers"]);
    const fromMs = readFrom(reader, item, { given, before: found.at(-1)?.fromMs });
    const price = readPrice(reader, item, { given, type });
    if (fromMs !== undefined) found.push({ fromMs, price });
  }
  return found.length === list.length && found.length > 0 ? found : undefined;
}

/** @param before the moment of the price before; `undefined`: this is the first */
function readFrom(
  reader: Reader,
  item: Entry,
  { given, before }: { readonly given: PriceFields; readonly before: number | undefined },
): number | undefined {
  if (given.from === undefined) {
    if (before === undefined) return -Infinity;
    report(reader, item, "from is missing: only the first price of a list can leave it out");
    return undefined;
  }
  const fromMs = moment(reader, given.from);
  if (fromMs === undefined) return undefined;
  if (before === undefined && fromMs > Date.now()) {
    report(
      reader,
      given.from,
      "no price counts until then: put the present one before it, without from",
    );
  } else if (before === fromMs) {
    report(reader, given.from, "the price before counts from this very moment; keep one of them");
  } else if (before !== undefined && fromMs < before) {
    report(reader, given.from, "is earlier than that of the price before: sort them by time");
  }
  return fromMs;
}

function readPrice(
  reader: Reader,
  entry: Entry,
  { given, type }: { readonly given: PriceFields; readonly type: string | undefined },
): PriceConfig {
  const rule = type === undefined ? undefined : rules[type];
  if (rule !== undefined) {
    checkAllowed(reader, given, { rule, type });
    const fix = `add ${rule.example}`;
    for (const name of rule.needed) required(reader, entry, { from: given, name, fix });
    if (rule.anyOf.length > 0 && !rule.anyOf.some((name) => given[name] !== undefined)) {
      report(reader, entry, `none of ${rule.anyOf.join(", ")} is given: ${fix}`);
    }
  }
  return {
    ...tokenPrices(reader, given),
    image: given.image && usd(reader, given.image),
    second: given.second && usd(reader, given.second),
    request: given.request && usd(reader, given.request),
    tiers: given.tiers && readTiers(reader, given.tiers),
  };
}

function checkAllowed(
  reader: Reader,
  given: PriceFields,
  { rule, type }: { readonly rule: PriceRule; readonly type: string | undefined },
): void {
  const has = rule.allowed.join(", ");
  for (const name of keys) {
    const value = given[name];
    if (value === undefined || rule.allowed.includes(name)) continue;
    report(reader, value, `a ${type} model has no such price (it has: ${has})`);
  }
}

function tokenPrices(reader: Reader, given: PriceFields): TokenPrices {
  const read = (name: PriceKey): bigint | undefined => given[name] && usd(reader, given[name]);
  return {
    input: read("input"),
    cachedInput: read("cached_input"),
    cacheWrite: read("cache_write"),
    output: read("output"),
    reasoning: read("reasoning"),
  };
}

function readTiers(reader: Reader, entry: Entry): readonly PriceTier[] {
  const list = items(reader, entry, "tiers { above, input, output, … }");
  if (list.length === 0) report(reader, entry, "name at least one tier, or leave the key out");
  const found: PriceTier[] = [];
  for (const item of list) {
    const given = fields(reader, item, ["above", ...tokens]);
    const fix = "add the number of tokens read over which a call has these prices";
    const aboveEntry = required(reader, item, { from: given, name: "above", fix });
    const above = aboveEntry && positive(reader, aboveEntry);
    if (!tokens.some((name) => given[name] !== undefined)) {
      report(reader, item, `none of ${tokens.join(", ")} is given: add what differs above it`);
    }
    const tier = tokenPrices(reader, given);
    if (aboveEntry === undefined || above === undefined) continue;
    const before = found.at(-1)?.above ?? 0;
    if (above <= before) {
      report(reader, aboveEntry, `must be more than that of the tier before, ${before}`);
    }
    found.push({ above, ...tier });
  }
  return found;
}
