/** The canonical form in which prices are stored, and the version that is its content hash. */
import { createHash } from "node:crypto";
import type { PriceConfig, PriceTier } from "../../config/config.ts";
import { type ServiceTier, serviceTiers } from "../../core/service-tiers.ts";
import { priceUnits, tokenUnits, type UnitKey } from "../../config/price-units.ts";

/** Stored prices: decimal digits of nano-USD; units that are not charged are left out. */
export type CanonicalUnits = Readonly<Record<string, string>>;

/** A stored price. `above` of a tier is decimal digits too. */
export interface CanonicalPrice {
  readonly tiers?: readonly CanonicalUnits[];
  readonly images?: readonly CanonicalUnits[];
  readonly serviceTiers?: CanonicalTiers;
  readonly serviceTier?: ServiceTier;
  readonly [member: string]: string | readonly CanonicalUnits[] | CanonicalTiers | undefined;
}

type CanonicalTiers = { readonly [Tier in ServiceTier]?: CanonicalPrice };

/**
 * The content hash of a price: 16 hexadecimal digits. Equal prices have equal versions, everywhere.
 */
export function priceVersion(price: PriceConfig): string {
  return createHash("sha256")
    .update(JSON.stringify(canonicalPrice(price)))
    .digest("hex")
    .slice(0, 16);
}

/** Encodes a price for storage. */
export function canonicalPrice(price: PriceConfig): CanonicalPrice {
  // The order is hashed, too: a new unit must be left out if it is absent, and may stand anywhere.
  const units = canonicalUnits(price, priceUnits);
  const tiers = price.tiers?.map((tier) => ({
    above: String(tier.above),
    ...canonicalUnits(tier, tokenUnits),
  }));
  const images = price.images?.map(({ size, quality, image }) => ({
    ...(size !== undefined && { size }),
    ...(quality !== undefined && { quality }),
    image: image.toString(),
  }));
  return {
    ...units,
    ...(tiers !== undefined && tiers.length > 0 && { tiers }),
    ...(images !== undefined && { images }),
    ...(price.serviceTiers && { serviceTiers: eachTier(price.serviceTiers, canonicalPrice) }),
    ...(price.serviceTier && { serviceTier: price.serviceTier }),
  };
}

/** Converts the price of each service tier, in the order of their list. */
function eachTier<From, To>(
  prices: { readonly [Tier in ServiceTier]?: From | undefined },
  convert: (price: From) => To,
): { readonly [Tier in ServiceTier]?: To } {
  const converted: { [Tier in ServiceTier]?: To } = {};
  for (const tier of serviceTiers) {
    const price = prices[tier];
    if (price !== undefined) converted[tier] = convert(price);
  }
  return converted;
}

function canonicalUnits<Key extends UnitKey>(
  prices: Readonly<Partial<Record<Key, bigint | undefined>>>,
  units: readonly { readonly key: Key }[],
): CanonicalUnits {
  const canonical: Record<string, string> = {};
  for (const { key } of units) {
    const nanos = prices[key];
    if (nanos !== undefined) canonical[key] = nanos.toString();
  }
  return canonical;
}

/** Decodes a stored price. */
export function parsePrice({
  tiers,
  images,
  serviceTiers: byTier,
  serviceTier,
  ...units
}: CanonicalPrice): PriceConfig {
  return {
    ...parseUnits(units as CanonicalUnits, priceUnits),
    ...(byTier && { serviceTiers: eachTier(byTier, parsePrice) }),
    ...(serviceTier && { serviceTier }),
    ...(images && {
      images: images.map(({ size, quality, image = "" }) => ({
        size,
        quality,
        image: BigInt(image),
      })),
    }),
    tiers: tiers?.map(
      (tier): PriceTier => ({ above: Number(tier["above"]), ...parseUnits(tier, tokenUnits) }),
    ),
  };
}

function parseUnits<Key extends UnitKey>(
  canonical: CanonicalUnits,
  units: readonly { readonly key: Key }[],
): Record<Key, bigint | undefined> {
  const entries = units.map(({ key }) => {
    const digits = canonical[key];
    return [key, digits === undefined ? undefined : BigInt(digits)];
  });
  return Object.fromEntries(entries) as Record<Key, bigint | undefined>;
}
