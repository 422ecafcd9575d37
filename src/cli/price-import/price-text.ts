/** Prices as `uas.yaml` names them: in one line of a report, and as the members of a YAML map. */
import type { DatedPrice, PriceConfig, TokenPrices } from "../../config/config.ts";
import { priceUnits, type UnitKey } from "../../config/price-units.ts";
import { formatUsd } from "../../core/money.ts";
import { momentText } from "../../config/price-dates.ts";

/** A price as the members of its map in `uas.yaml`. */
export type PriceMembers = Readonly<
  Record<string, string | number | UnitTexts | readonly object[]>
>;

/** Prices in USD, by the names of their units in `uas.yaml`. */
type UnitTexts = Readonly<Record<string, string>>;

/** The prices of a list as maps of `uas.yaml`: the first without `from`, if it always counted. */
export function priceMembers(prices: readonly DatedPrice[]): readonly PriceMembers[] {
  return prices.map(({ fromMs, price: { tiers = [], ...units } }) => ({
    ...(Number.isFinite(fromMs) && { from: momentText(fromMs) }),
    ...nested(unitTexts(units)),
    ...(tiers.length > 0 && {
      tiers: tiers.map(({ above, ...tier }) => ({ above, ...unitTexts(tier) })),
    }),
  }));
}

/** Returns the members of a map. Prices of tools are nested in a separate map. */
function nested(units: UnitTexts): PriceMembers {
  const members: Record<string, string | Record<string, string>> = {};
  for (const [name, usd] of Object.entries(units)) {
    const [head = "", rest] = name.split(".");
    if (rest === undefined) members[name] = usd;
    else members[head] = { ...(members[head] as Record<string, string>), [rest]: usd };
  }
  return members;
}

function unitTexts(units: TokenPrices): UnitTexts {
  const prices: Partial<Record<UnitKey, bigint | undefined>> = units;
  const members = priceUnits.flatMap(({ key, name }) => {
    const nanos = prices[key];
    return nanos === undefined ? [] : [[name, formatUsd(nanos)]];
  });
  return Object.fromEntries(members) as UnitTexts;
}

/**
 * Prices in one line: `input 0.25, output 2; above 200000 tokens: input 0.5; from 2027-01-01: input
 * 1`.
 */
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
    ({ above, ...tier }) => `above ${above} tokens: ${unitsText(unitTexts(tier))}`,
  );
  return [unitsText(unitTexts(units)), ...longer].join("; ");
}

function unitsText(members: UnitTexts): string {
  return Object.entries(members)
    .map(([name, usd]) => `${name} ${usd}`)
    .join(", ");
}
