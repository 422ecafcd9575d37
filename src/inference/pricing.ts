/** What calls cost, as the operator's configuration says. */
import type { PriceBook } from "../billing/price-book.ts";
import { callCost, holdAmount } from "../billing/price.ts";
import { priceAt } from "../config/price.ts";
import type { Pricing } from "./pipeline/context.ts";

/** Makes it. */
export function createPricing(prices: PriceBook): Pricing {
  return {
    priceAt: (model, startMs) => priceAt(model.prices, startMs),
    version: (price) => prices.version(price),
    hold: (price, { input, output, ...units }, discountBp) =>
      holdAmount({ price, inputTokens: input, outputTokens: output, ...units, discountBp }),
    cost: callCost,
    vendorCost: ({ costs }, usage, startMs) => costs && callCost(priceAt(costs, startMs), usage),
  };
}
