/** Prices as `uas.yaml` names them: in one line of a report, and as the members of a YAML map. */
import type { DatedPrice, PriceConfig, TokenPrices } from "../../config/config.ts";
import { formatUsd } from "../../core/money.ts";
import { momentText } from "../price-dates.ts";
import { type UnitKey, priceUnits } from "../price-units.ts";

/** A price as the members of its map in `uas.yaml`. */
export type PriceMembers = Readonly<Record<string, string | number | readonly object[]>>;

/** The prices of a list as maps of `uas.yaml`: the first without `from`, where it always counted. */
export function priceMembers(prices: readonly DatedPrice[]): readonly PriceMembers[] {
  return prices.map(({ fromMs, price: { tiers = [], ...units } }) => ({
    ...(Number.isFinite(fromMs) && { from: momentText(fromMs) }),
    ...unitMembers(units),
    ...(tiers.length > 0 && {
      tiers: tiers.map(({ above, ...tier }) => ({ above, ...unitMembers(tier) })),
    }),
  }));
}

function unitMembers(units: TokenPrices): Readonly<Record<string, string>> {
  const prices: Partial<Record<UnitKey, bigint | undefined>> = units;
  const members = priceUnits.flatMap(({ key, name }) => {
    const nanos = prices[key];
    return nanos === undefined ? [] : [[name, formatUsd(nanos)]];
  });
  return Object.fromEntries(members) as Record<string, string>;
}

/** Prices in one line: `input 0.25, output 2; above 200000 tokens: input 0.5; from 2027-01-01: input 1`. */
export function pricesText(prices: readonly DatedPrice[]): string {
  return prices
    .map(({ fromMs, price }) => {
      const since = Number.isFinite(fromMs) ? `from ${momentText(fromMs)}: ` : "";
      return since + priceText(price);
    })
    .join("; ");
}

function priceText({ tiers = [], ...units }: PriceConfig): string {
  const longer = tiers.map(
    ({ above, ...tier }) => `above ${above} tokens: ${unitsText(unitMembers(tier))}`,
  );
  return [unitsText(unitMembers(units)), ...longer].join("; ");
}

function unitsText(members: Readonly<Record<string, string>>): string {
  return Object.entries(members)
    .map(([name, usd]) => `${name} ${usd}`)
    .join(", ");
}
