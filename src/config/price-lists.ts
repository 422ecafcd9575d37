/**
 * `price_lists:` of a configuration: other prices for the accounts that have a list, such as those
 * of resellers. A list changes all prices by a markup; a model can have its own price in a list.
 */
import type { z } from "zod";
import type { Parsed } from "./address.ts";
import type { DatedPrice, PriceConfig, PriceTier } from "./config.ts";
import type { ConfigDocument } from "./document.ts";
import { priceUnits, tokenUnits } from "./price-units.ts";
import { scalar } from "./scalars.ts";
import { named, section } from "./schema.ts";
import { nearest } from "../core/suggest.ts";

/** The lists by name. */
export type PriceLists = ReadonlyMap<string, z.output<typeof priceListSchema>>;

const priceListSchema = section(
  { markup: scalar("a percentage such as 15% or -10%", parseMarkup).default(0) },
  {
    about: {
      markup:
        "Added to every price of a model that has no price of its own in the list, such as `15%`; `-10%` is a discount. Default: 0%.",
    },
  },
);

/** The form of a list's name. */
const listName = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** The schema of the section. */
export const priceListsSchema = named(priceListSchema, {
  what: "price lists by name",
  fix: "add price lists",
  checkName: (name) =>
    listName.test(name)
      ? undefined
      : "the name of a price list has at most 64 lower-case letters, digits, - and _",
}).meta({ propertyNames: { pattern: listName.source } });

/** Hundredths of a percent in a whole. */
const wholeBp = 10_000;

/** A markup in hundredths of a percent, from -100 % to 1,000 %. */
function parseMarkup(written: string): Parsed<number> {
  const [, sign, whole = "", fraction = ""] =
    /^([+-]?)(\d{1,4})(?:\.(\d{1,2}))?%$/.exec(written) ?? [];
  const bp = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  const value = sign === "-" ? -bp : bp;
  if (whole !== "" && value >= -wholeBp && value <= 10 * wholeBp) return { value };
  return { problem: "must be a percentage from -100% to 1000%, such as 15% or -2.5%" };
}

/** Reports prices of models in lists that do not exist. */
export function checkPriceLists(
  document: ConfigDocument,
  models: ReadonlyMap<string, { readonly priceLists?: ReadonlyMap<string, unknown> | undefined }>,
  lists: PriceLists,
): void {
  const have = [...lists.keys()];
  for (const [key, { priceLists = new Map<string, unknown>() }] of models) {
    for (const name of priceLists.keys()) {
      if (lists.has(name)) continue;
      const near = nearest(name, have);
      const guess = near === undefined ? "" : `, did you mean "${near}"?`;
      const message = `there is no such price list under price_lists${guess}`;
      document.errorAtKey(["models", key, "price_lists", name], message);
    }
  }
}

/** The prices of a model in all lists: its own one, else its usual price with the markup. */
export function listPricesOf(
  prices: readonly DatedPrice[],
  own: ReadonlyMap<string, readonly DatedPrice[]>,
  lists: PriceLists,
): ReadonlyMap<string, readonly DatedPrice[]> {
  return new Map(
    [...lists].map(([name, { markup }]) => [name, own.get(name) ?? withMarkup(prices, markup)]),
  );
}

function withMarkup(prices: readonly DatedPrice[], bp: number): readonly DatedPrice[] {
  if (bp === 0) return prices;
  return prices.map(({ fromMs, price }) => ({ fromMs, price: priceWithMarkup(price, bp) }));
}

/** Every part of a price with a markup, rounded up to the nano-dollar. */
function priceWithMarkup(price: PriceConfig, bp: number): PriceConfig {
  const raised = (nanos: bigint): bigint => raise(nanos, bp);
  const units = priceUnits.flatMap(({ key }) => {
    const nanos = price[key];
    return nanos === undefined ? [] : [[key, raised(nanos)] as const];
  });
  const tiers = price.tiers?.map((tier): PriceTier => {
    const tokens = tokenUnits.map(({ key }) => [key, tier[key] && raised(tier[key])]);
    return { ...tier, ...Object.fromEntries(tokens) };
  });
  const images = price.images?.map((row) => ({ ...row, image: raised(row.image) }));
  const serviceTiers =
    price.serviceTiers &&
    Object.fromEntries(
      Object.entries(price.serviceTiers).map(([tier, own]) => [
        tier,
        own && priceWithMarkup(own, bp),
      ]),
    );
  return {
    ...price,
    ...Object.fromEntries(units),
    ...(tiers && { tiers }),
    ...(images && { images }),
    ...(serviceTiers && { serviceTiers }),
  };
}

function raise(nanos: bigint, bp: number): bigint {
  const scaled = nanos * BigInt(wholeBp + bp);
  return (scaled + BigInt(wholeBp) - 1n) / BigInt(wholeBp);
}
