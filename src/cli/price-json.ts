/** Prices in the words of the command line. */
import { type PriceUnit, priceUnits, type UnitKey } from "../config/price-units.ts";
import type { Price } from "../../gen/uas/type/v1/price_pb.ts";

/** Prices by unit, in USD. */
export type UnitsJson = Readonly<Record<string, string>>;

/** A price: its units, then its tiers by length, and its prices of images and of service tiers. */
export interface PriceJson {
  readonly units: UnitsJson;
  readonly tiers: readonly { readonly above: number; readonly units: UnitsJson }[];
  /** By size and quality; empty for any. Absent means one price for all images. */
  readonly images?: readonly ImagePriceJson[];
  /** Complete prices by service tier. Absent means one price for all tiers. */
  readonly serviceTiers?: Readonly<Record<string, PriceJson>>;
  /** The tier that this price is of. Absent for the usual one. */
  readonly serviceTier?: string;
}

interface ImagePriceJson {
  readonly size: string;
  readonly quality: string;
  readonly price: string;
}

/** The units that have a price, in the order of a receipt. */
export function priceJson(price: Price | undefined): PriceJson {
  const { tiers = [], images = [], serviceTiers = [], serviceTier = "" } = price ?? {};
  return {
    units: unitsJson(price ?? {}),
    tiers: tiers.map((tier) => ({ above: tier.above, units: unitsJson(tier) })),
    ...(images.length > 0 && {
      images: images.map(({ size, quality, price: usd }) => ({ size, quality, price: usd })),
    }),
    ...(serviceTiers.length > 0 && {
      serviceTiers: Object.fromEntries(
        serviceTiers.map(({ tier, price: own }) => [tier, priceJson(own)]),
      ),
    }),
    ...(serviceTier !== "" && { serviceTier }),
  };
}

function unitsJson(prices: { readonly [Key in UnitKey]?: string }): UnitsJson {
  const given = priceUnits.flatMap(({ key }) => {
    const usd = prices[key] ?? "";
    return usd === "" ? [] : [[key, usd] as const];
  });
  return Object.fromEntries(given);
}

/** A price on one line: `input 0.25, output 2; above 200000 tokens: input 0.5`. */
export function priceText({ units, tiers, images = [], serviceTiers = {} }: PriceJson): string {
  const services = Object.entries(serviceTiers).map(([tier, own]) => `${tier}: ${priceText(own)}`);
  const more = tiers.map((tier) => `above ${tier.above} tokens: ${unitsText(tier.units)}`);
  return [unitsText(units), ...more, ...images.map(imageText), ...services].join("; ");
}

function imageText({ size, quality, price }: ImagePriceJson): string {
  const form = [size, quality].filter((word) => word !== "").join(" ");
  return `${form || "other images"}: ${price}`;
}

function unitsText(units: UnitsJson): string {
  return Object.entries(units)
    .map(([unit, usd]) => `${unit} ${usd}`)
    .join(", ");
}

/** The quantity that a unit's price is for. */
export function perText(unit: string): string {
  return unitNamed(unit)?.per ?? "1M tokens";
}

/** @param name as in a price (`webSearch`) or in the line of a receipt (`web_search`) */
function unitNamed(name: string): PriceUnit | undefined {
  return priceUnits.find((unit) => unit.key === name || unit.name.replace(/.*\./, "") === name);
}

/** The price of a unit in a call with more input tokens than `above`; `undefined` if it is free. */
export function unitAt(price: PriceJson, unit: string, above: number): string | undefined {
  const tier = price.tiers.findLast((each) => each.above <= above);
  const whole = unitNamed(unit)?.whole;
  return (
    tier?.units[unit] ??
    price.units[unit] ??
    (whole === undefined ? undefined : unitAt(price, whole, above))
  );
}

/**
 * Returns all units that the prices name: units of the price itself (`above` 0) and of each tier.
 */
export function namedUnits(prices: readonly PriceJson[]): { unit: string; above: number }[] {
  const parts = prices.flatMap(({ units, tiers }) => [{ above: 0, units }, ...tiers]);
  const limits = [...new Set(parts.map(({ above }) => above))].toSorted((a, b) => a - b);
  return limits.flatMap((limit) =>
    priceUnits
      .map(({ key }) => key)
      .filter((unit) => parts.some(({ above, units }) => above === limit && unit in units))
      .map((unit) => ({ unit, above: limit })),
  );
}
