/** Prices as the contract's one message for them, wherever they are shown: model lists, price history, receipts. */
import { create } from "@bufbuild/protobuf";
import { PriceSchema, type Price } from "../../../gen/uas/type/v1/price_pb.ts";
import type { PriceConfig, TokenPrices } from "../../config/config.ts";
import { formatUsd } from "../../core/money.ts";

/** A price in USD. Units that are not charged are empty. */
export function priceMessage(price: PriceConfig): Price {
  return create(PriceSchema, {
    ...tokenPrices(price),
    image: usd(price.image),
    second: usd(price.second),
    request: usd(price.request),
    tiers: (price.tiers ?? []).map((tier) => ({ above: tier.above, ...tokenPrices(tier) })),
  });
}

function tokenPrices(prices: TokenPrices): Record<keyof TokenPrices, string> {
  return {
    input: usd(prices.input),
    cachedInput: usd(prices.cachedInput),
    cacheWrite: usd(prices.cacheWrite),
    cacheWrite1h: usd(prices.cacheWrite1h),
    output: usd(prices.output),
    reasoning: usd(prices.reasoning),
  };
}

function usd(nanos: bigint | undefined): string {
  return nanos === undefined ? "" : formatUsd(nanos);
}
