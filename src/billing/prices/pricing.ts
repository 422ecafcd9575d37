/** The prices of calls, tasks and native jobs: quoted, held and charged by one implementation. */
import type { ModelConfig, PriceConfig, RouteConfig } from "../../config/config.ts";
import { priceAt } from "../../config/price.ts";
import type { PriceBook } from "./price-book.ts";
import { callCost, holdAmount, type CallUsage, type HoldEstimate } from "./price.ts";

/** Quotes and charges. `discountBp` is the account's discount in hundredths of a percent. */
export interface Pricing {
  /** The price in force when a call starts, in milliseconds since 1970: it is held, charged and recorded with this
   * one, whatever comes into force meanwhile. */
  priceAt(model: ModelConfig, startMs: number): PriceConfig;
  /** The version of a price, for the record of a call. */
  version(price: PriceConfig): string;
  /** What to hold for the most that a call can use, in nano-USD, rounded up. */
  hold(price: PriceConfig, most: MostUsage, discountBp: number): bigint;
  /** What to charge, in nano-USD, rounded down. */
  cost(price: PriceConfig, usage: CallUsage, discountBp: number): bigint;
  /** What the vendor of a route takes of the operator for a call that started at this moment, in nano-USD,
   * rounded down; `undefined`: not known. */
  vendorCost(route: RouteConfig, usage: CallUsage, startMs: number): bigint | undefined;
}

/** The most that a call can use. What it leaves out it cannot use. */
export type MostUsage = Omit<HoldEstimate, "price" | "discountBp">;

/** Creates it over the stored prices. */
export function createPricing(prices: PriceBook): Pricing {
  return {
    priceAt: (model, startMs) => priceAt(model.prices, startMs),
    version: (price) => prices.version(price),
    hold: (price, most, discountBp) => holdAmount({ price, ...most, discountBp }),
    cost: callCost,
    vendorCost: ({ costs }, usage, startMs) => costs && callCost(priceAt(costs, startMs), usage),
  };
}
