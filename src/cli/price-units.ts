/** The units of a price by their names in `uas.yaml`, and the price of a unit with its defaults resolved. */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { PriceConfig, TokenPrices } from "../config/config.ts";

/** A unit as `PriceConfig` names it. */
export type UnitKey = Exclude<keyof PriceConfig, "tiers">;

/** A unit of a price. */
export interface PriceUnit {
  readonly key: UnitKey;
  /** Its name in `uas.yaml`. */
  readonly name: string;
  /** The unit whose price counts where this one has none. `undefined`: it is not charged then. */
  readonly whole?: "input" | "output";
  /** The model types that can have it. Default: all. */
  readonly types?: readonly ModelType[];
}

/** All units, in the order in which prices are written. */
export const priceUnits: readonly PriceUnit[] = [
  { key: "input", name: "input" },
  { key: "cachedInput", name: "cached_input", whole: "input" },
  { key: "cacheWrite", name: "cache_write", whole: "input" },
  { key: "cacheWrite1h", name: "cache_write_1h" },
  { key: "output", name: "output" },
  { key: "reasoning", name: "reasoning", whole: "output" },
  { key: "image", name: "image", types: [ModelType.IMAGE] },
  { key: "second", name: "second", types: [ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO] },
  { key: "request", name: "request" },
];

const tokenKeys: readonly UnitKey[] = [
  "input",
  "cachedInput",
  "cacheWrite",
  "cacheWrite1h",
  "output",
  "reasoning",
];

/** Whether a unit is tokens: only those can have tiers. */
export function isTokenUnit(key: UnitKey): key is keyof TokenPrices {
  return tokenKeys.includes(key);
}

/**
 * The price of a unit in a call that reads more than `above` tokens, in nano-USD.
 *
 * @returns `undefined` where the unit is not charged
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
