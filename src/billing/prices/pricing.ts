/** The prices of calls, tasks and native jobs: quoted, held and charged by one implementation. */
import type { ModelConfig, PriceConfig, RouteConfig } from "../../config/config.ts";
import { priceAt } from "../../config/price.ts";
import type { PriceBook } from "./price-book.ts";
import { callCost, holdAmount, type CallUsage, type HoldEstimate } from "./price.ts";

/** Computes what calls cost. `discountBp` is the account's discount in hundredths of a percent. */
export interface Pricing {
  /** The price in force when a call starts, in milliseconds since 1970. The call is held, charged and recorded at this
   * price, whatever comes into force meanwhile. */
  priceAt(model: ModelConfig, startMs: number): PriceConfig;
  /** When the gateway first had a price for the model; `undefined`: not known. */
  offeredSince(model: ModelConfig): Date | undefined;
  /** The version of a price, for the record of a call. */
  version(price: PriceConfig): string;
  /** The amount to hold for the maximum usage of a call, in nano-USD, rounded up. */
  hold(price: PriceConfig, usage: MaxUsage, discountBp: number): bigint;
  /** The amount to charge, in nano-USD, rounded down. */
  cost(price: PriceConfig, usage: CallUsage, discountBp: number): bigint;
  /** What the vendor of a route charges the operator for a call that started at `startMs`, in nano-USD, rounded down;
   * `undefined`: not known. */
  vendorCost(route: RouteConfig, usage: CallUsage, startMs: number): bigint | undefined;
}

/** The maximum usage of a call. Absent units count as 0. */
export type MaxUsage = Omit<HoldEstimate, "price" | "discountBp">;

/** Creates the pricing over the stored prices. */
export function createPricing(prices: PriceBook): Pricing {
  return {
    priceAt: (model, startMs) => priceAt(model.prices, startMs),
    offeredSince: ({ key }) => prices.firstLoad(key),
    version: (price) => prices.version(price),
    hold: (price, usage, discountBp) => holdAmount({ price, ...usage, discountBp }),
    cost: callCost,
    vendorCost: ({ costs }, usage, startMs) => costs && callCost(priceAt(costs, startMs), usage),
  };
}
