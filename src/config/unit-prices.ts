/** The price of a unit, with its defaults resolved. */
import type { PriceConfig } from "./config.ts";
import { isTokenUnit, type PriceUnit, type UnitKey } from "./price-units.ts";

/**
 * The price of a unit in a call that reads more than `above` tokens, in nano-USD.
 *
 * @returns `undefined` if the unit is not charged
 */
export function unitPrice(price: PriceConfig, unit: PriceUnit, above: number): bigint | undefined {
  const own = ownPrice(price, unit.key, above);
  if (own !== undefined || unit.whole === undefined) return own;
  return ownPrice(price, unit.whole, above);
}

function ownPrice(price: PriceConfig, key: UnitKey, above: number): bigint | undefined {
  if (!isTokenUnit(key)) return price[key];
  const tier = price.tiers?.findLast((each) => each.above <= above);
  return tier?.[key] ?? price[key];
}

/** Whether a price, or one of its tiers, names a unit. */
export function namesUnit(price: PriceConfig, key: UnitKey): boolean {
  if (price[key] !== undefined) return true;
  return isTokenUnit(key) && (price.tiers ?? []).some((tier) => tier[key] !== undefined);
}

/** The limits of tokens at which any of the prices changes, ascending; the first is 0. */
export function tierLimits(prices: readonly PriceConfig[]): readonly number[] {
  const limits = prices.flatMap(({ tiers = [] }) => tiers.map(({ above }) => above));
  return [...new Set([0, ...limits])].toSorted((a, b) => a - b);
}
