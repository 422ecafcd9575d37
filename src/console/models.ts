/** The models that this gateway serves, with their prices. */
import { useQuery } from "@connectrpc/connect-query";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { type ModelPrices, PriceState } from "../../gen/uas/billing/v1/price_pb.ts";
import type { Price } from "../../gen/uas/type/v1/price_pb.ts";

/** The most models that are asked for. */
const modelsMax = 1_000;

/** The price that counts now. `undefined`: the model is no longer configured. */
export function currentPrice({ versions }: ModelPrices): Price | undefined {
  return versions.find(({ state }) => state === PriceState.CURRENT)?.price;
}

/** All configured models with their prices, by model key. */
export function usePrices() {
  return useQuery(
    BillingService.method.listPrices,
    { pageSize: modelsMax },
    {
      staleTime: 60_000,
      select: ({ prices }) => prices.filter((each) => currentPrice(each) !== undefined),
    },
  );
}

/** The cheapest model that produces text: what examples call. `undefined` while they are loaded, or there is none. */
export function cheapestText(prices: readonly ModelPrices[] | undefined): string | undefined {
  const priced = (prices ?? []).flatMap((each) => {
    const price = currentPrice(each);
    return price === undefined || price.output === ""
      ? []
      : [{ modelKey: each.modelKey, cost: Number(price.input || 0) + Number(price.output) }];
  });
  return priced.toSorted((one, other) => one.cost - other.cost)[0]?.modelKey;
}
