/** Lists of dated prices: what of them is still to come, and their moments. */
import type { DatedPrice } from "./config.ts";
import { priceAt } from "./price.ts";

/**
 * The price that counts now, always valid, and those that follow it.
 *
 * @param prices by time, at least one
 * @param nowMs milliseconds since 1970
 */
export function upcoming(prices: readonly DatedPrice[], nowMs: number): readonly DatedPrice[] {
  const current = priceAt(prices, nowMs);
  // The first one applies before its own time too.
  const later = prices.filter(({ fromMs, price }) => fromMs > nowMs && price !== current);
  return [{ fromMs: -Infinity, price: current }, ...later];
}

/** Every moment at which a price of any of the lists begins, ascending. */
export function moments(lists: readonly (readonly DatedPrice[])[]): readonly number[] {
  const all = lists.flatMap((list) => list.map(({ fromMs }) => fromMs));
  return [...new Set(all)].toSorted((a, b) => (a < b ? -1 : 1));
}

/** A moment as `uas.yaml` writes it: the date if it is midnight in UTC, else date and time. */
export function momentText(fromMs: number): string {
  return new Date(fromMs).toISOString().replace(/T00:00:00\.000Z$|\.000(?=Z$)/, "");
}
