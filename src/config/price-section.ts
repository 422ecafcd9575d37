/** Reads the price of a model. */
import type { PriceConfig } from "./config.ts";
import { type Entry, type Reader, fields, report, required } from "./reader.ts";
import { usd } from "./values.ts";

const tokens = ["input", "cached_input", "cache_write", "output"] as const;
const keys = [...tokens, "image", "second", "request"] as const;
type PriceKey = (typeof keys)[number];

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

/** Reads a price. `type` is the model's type word; `undefined` where it is in error: then any unit passes. */
export function readPrice(reader: Reader, entry: Entry, type: string | undefined): PriceConfig {
  const given = fields(reader, entry, keys);
  const rule = type === undefined ? undefined : rules[type];
  if (rule !== undefined) {
    for (const name of keys) {
      const value = given[name];
      if (value === undefined || rule.allowed.includes(name)) continue;
      report(
        reader,
        value,
        `a ${type} model has no such price (it has: ${rule.allowed.join(", ")})`,
      );
    }
    const fix = `add ${rule.example}`;
    for (const name of rule.needed) required(reader, entry, { from: given, name, fix });
    if (rule.anyOf.length > 0 && !rule.anyOf.some((name) => given[name] !== undefined)) {
      report(reader, entry, `none of ${rule.anyOf.join(", ")} is given: ${fix}`);
    }
  }
  const read = (name: PriceKey): bigint | undefined => given[name] && usd(reader, given[name]);
  return {
    input: read("input"),
    cachedInput: read("cached_input"),
    cacheWrite: read("cache_write"),
    output: read("output"),
    image: read("image"),
    second: read("second"),
    request: read("request"),
  };
}
