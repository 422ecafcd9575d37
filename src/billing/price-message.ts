/** Prices as messages of the contract. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type Price,
  PriceSchema,
  PriceState,
  type PriceVersion,
  PriceVersionSchema,
} from "../../gen/uas/billing/v1/price_pb.ts";
import type { DatedPrice, PriceConfig, TokenPrices } from "../config/config.ts";
import { priceAt } from "../config/price.ts";
import { formatUsd } from "../money.ts";
import { priceVersion } from "./price-form.ts";

/** A price in USD. */
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
    output: usd(prices.output),
    reasoning: usd(prices.reasoning),
  };
}

function usd(nanos: bigint | undefined): string {
  return nanos === undefined ? "" : formatUsd(nanos);
}

/** The versions of a list of prices, in its order. */
export function datedVersions(prices: readonly DatedPrice[], nowMs: number): PriceVersion[] {
  const current = priceAt(prices, nowMs);
  return prices.map(({ fromMs, price }) => {
    const later = fromMs > nowMs ? PriceState.FUTURE : PriceState.PAST;
    return versionMessage(price, {
      version: priceVersion(price),
      state: price === current ? PriceState.CURRENT : later,
      fromTime: Number.isFinite(fromMs) ? timestampFromDate(new Date(fromMs)) : undefined,
    });
  });
}

/** One version. */
export function versionMessage(
  price: PriceConfig,
  rest: MessageInitShape<typeof PriceVersionSchema>,
): PriceVersion {
  return create(PriceVersionSchema, { ...rest, price: priceMessage(price) });
}
