/**
 * Prices per service tier of a vendor: their schema, and the price at which a call is served
 * (R-TXT-13).
 */
import type { z } from "zod";
import { sameTiers, type ServiceTier, serviceTiers, tierOfWord } from "../core/service-tiers.ts";
import type { DatedPrice, PriceConfig } from "./config.ts";
import { overlayPrice, priceAt, type PricesSchema } from "./price.ts";
import { section } from "./schema.ts";

/**
 * The schema of `tiers` of a model or route.
 *
 * @param prices the schema of what one tier changes in the price
 */
export function serviceTiersSchema(prices: PricesSchema) {
  const shape = Object.fromEntries(serviceTiers.map((tier) => [tier, prices.optional()]));
  return section(shape as Record<ServiceTier, z.ZodOptional<PricesSchema>>, {
    about: Object.fromEntries(
      serviceTiers.map((tier) => [tier, `What differs in the price of the tier \`${tier}\`.`]),
    ),
    check: (given) =>
      Object.keys(given).length > 0
        ? undefined
        : `none of ${serviceTiers.join(", ")} is given: add one, or leave the key out`,
  });
}

/** The changes of each tier, by time. */
type WrittenTiers = { readonly [Tier in ServiceTier]?: readonly DatedPrice[] | undefined };

/**
 * Adds the prices of tiers to the prices of a model or route: one price for each time at which any
 * of them changes.
 */
export function withServiceTiers(
  prices: readonly DatedPrice[],
  tiers: WrittenTiers | undefined,
): readonly DatedPrice[] {
  if (tiers === undefined) return prices;
  const all = [prices, ...serviceTiers.flatMap((tier) => (tiers[tier] ? [tiers[tier]] : []))];
  const moments = [...new Set(all.flat().map(({ fromMs }) => fromMs))];
  return moments
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((fromMs) => {
      const price = priceAt(prices, fromMs);
      const changed = serviceTiers.flatMap((tier) => {
        const changes = tiers[tier];
        if (changes === undefined) return [];
        const own = overlayPrice(price, priceAt(changes, fromMs));
        return [[tier, { ...own, serviceTier: tier }] as const];
      });
      return { fromMs, price: { ...price, serviceTiers: Object.fromEntries(changed) } };
    });
}

/** The model without prices of tiers, for calls that cannot be charged by them. */
export function withoutServiceTiers<Model extends { readonly prices: readonly DatedPrice[] }>(
  model: Model,
): Model {
  if (model.prices.every(({ price }) => price.serviceTiers === undefined)) return model;
  const prices = model.prices.map(({ fromMs, price }) => {
    const { serviceTiers: _, ...plain } = price;
    return { fromMs, price: plain };
  });
  return { ...model, prices };
}

/**
 * Returns the price of the tier that a reply names.
 *
 * @param word the vendor's word; empty or absent if the reply names no tier
 * @returns the price itself if the tier has no price; undefined if the reply names no tier
 */
export function servedPrice(price: PriceConfig, word: string | undefined): PriceConfig | undefined {
  const tier = word === undefined ? undefined : tierOfWord(word);
  if (tier === undefined) return undefined;
  if (tier === "standard") return price;
  const { serviceTiers: priced = {} } = price;
  return (
    sameTiers(tier).reduce<PriceConfig | undefined>(
      (own, each) => own ?? priced[each],
      undefined,
    ) ?? price
  );
}

/**
 * Returns the prices at which a request can be served. @param tiers the tiers that it requests.
 * Default: none
 */
export function possiblePrices(
  price: PriceConfig,
  tiers: readonly ServiceTier[] | undefined,
): readonly PriceConfig[] {
  if (tiers === undefined || price.serviceTiers === undefined) return [price];
  return [price, ...tiers.flatMap((tier) => price.serviceTiers?.[tier] ?? [])];
}

/** The prices of all tiers that have one. */
export function tierPricesOf({ serviceTiers: priced = {} }: PriceConfig): readonly PriceConfig[] {
  return serviceTiers.flatMap((tier) => priced[tier] ?? []);
}

/**
 * Whether a vendor may bill more for a tier than the price covers: the tier is more expensive and
 * has no price, or it is unknown.
 */
export function isTierUnpriced(price: PriceConfig, word: string): boolean {
  const tier = tierOfWord(word);
  if (tier === undefined) return !/^(?:auto)?$/i.test(word);
  const isDearer = tier === "priority" || tier === "fast" || tier === "ultrafast";
  return isDearer && servedPrice(price, word) === price;
}
