/**
 * Prices as the contract's one message for them, wherever they are shown: model lists, price
 * history, receipts.
 */
import { create } from "@bufbuild/protobuf";
import { PriceSchema, type Price } from "../../gen/uas/type/v1/price_pb.ts";
import type { PriceConfig } from "./config.ts";
import { priceUnits, tokenUnits, type UnitKey } from "./price-units.ts";
import { formatUsd } from "../core/money.ts";
import { serviceTiers } from "../core/service-tiers.ts";

/** A price in USD. Units that are not charged are empty. */
export function priceMessage(price: PriceConfig): Price {
  const { serviceTiers: byTier = {}, serviceTier = "" } = price;
  return create(PriceSchema, {
    ...unitPrices(price, priceUnits),
    tiers: (price.tiers ?? []).map((tier) => ({
      above: tier.above,
      ...unitPrices(tier, tokenUnits),
    })),
    images: (price.images ?? []).map(({ size = "", quality = "", image }) => ({
      size,
      quality,
      price: formatUsd(image),
    })),
    serviceTier,
    serviceTiers: serviceTiers.flatMap((tier) => {
      const own = byTier[tier];
      return own === undefined ? [] : [{ tier, price: priceMessage(own) }];
    }),
  });
}

function unitPrices<Key extends UnitKey>(
  prices: Readonly<Partial<Record<Key, bigint | undefined>>>,
  units: readonly { readonly key: Key }[],
): Record<Key, string> {
  const entries = units.map(({ key }) => {
    const nanos = prices[key];
    return [key, nanos === undefined ? "" : formatUsd(nanos)];
  });
  return Object.fromEntries(entries) as Record<Key, string>;
}
