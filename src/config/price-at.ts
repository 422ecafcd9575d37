import type { DatedPrice, PriceConfig } from "./config.ts";

/**
 * The price that counts at a moment: the last that has begun. A moment before all of them has the first:
 * only a clock that went back can ask for it.
 *
 * @param prices by time, at least one
 * @param timeMs milliseconds since 1970
 */
export function priceAt(prices: readonly DatedPrice[], timeMs: number): PriceConfig {
  let at = prices.length - 1;
  while (at > 0 && (prices[at]?.fromMs ?? 0) > timeMs) at--;
  const dated = prices[at];
  if (dated === undefined) throw new RangeError("a model without a price");
  return dated.price;
}
