/** The canonical form in which prices are stored, and the version that is its content hash. */
import { createHash } from "node:crypto";
import type { PriceConfig, PriceTier, TokenPrices } from "../../config/config.ts";
import { priceUnits, tokenUnitNames } from "./price.ts";

/** Stored prices: decimal digits of nano-USD; units that are not charged are left out. */
export type CanonicalUnits = Readonly<Record<string, string>>;

/** A stored price. `above` of a tier is decimal digits too. */
export interface CanonicalPrice {
  readonly tiers?: readonly CanonicalUnits[];
  readonly [member: string]: string | readonly CanonicalUnits[] | undefined;
}

/** The content hash of a price: 16 hexadecimal digits. Equal prices have equal versions, everywhere. */
export function priceVersion(price: PriceConfig): string {
  return createHash("sha256")
    .update(JSON.stringify(canonicalPrice(price)))
    .digest("hex")
    .slice(0, 16);
}

/** Encodes a price for storage. */
export function canonicalPrice(price: PriceConfig): CanonicalPrice {
  // The order is hashed, too: a new unit must be left out where it is absent, and may stand anywhere.
  const units = canonicalUnits(price, priceUnits);
  if (price.tiers === undefined || price.tiers.length === 0) return units;
  const tiers = price.tiers.map((tier) => ({
    above: String(tier.above),
    ...canonicalUnits(tier, tokenUnitNames),
  }));
  return { ...units, tiers };
}

function canonicalUnits<Member extends string>(
  prices: Readonly<Partial<Record<Member, bigint | undefined>>>,
  names: readonly Member[],
): CanonicalUnits {
  const canonical: Record<string, string> = {};
  for (const name of names) {
    const nanos = prices[name];
    if (nanos !== undefined) canonical[name] = nanos.toString();
  }
  return canonical;
}

/** Decodes a stored price. */
export function parsePrice({ tiers, ...units }: CanonicalPrice): PriceConfig {
  const canonical = units as CanonicalUnits;
  return {
    ...parseTokens(canonical),
    image: nanosOf(canonical["image"]),
    second: nanosOf(canonical["second"]),
    request: nanosOf(canonical["request"]),
    tiers: tiers?.map(
      (tier): PriceTier => ({ above: Number(tier["above"]), ...parseTokens(tier) }),
    ),
  };
}

function parseTokens(canonical: CanonicalUnits): TokenPrices {
  return {
    input: nanosOf(canonical["input"]),
    cachedInput: nanosOf(canonical["cachedInput"]),
    cacheWrite: nanosOf(canonical["cacheWrite"]),
    cacheWrite1h: nanosOf(canonical["cacheWrite1h"]),
    output: nanosOf(canonical["output"]),
    reasoning: nanosOf(canonical["reasoning"]),
  };
}

function nanosOf(digits: string | undefined): bigint | undefined {
  return digits === undefined ? undefined : BigInt(digits);
}
