/**
 * The models of the gateway with their prices and limits, as people compare them: USD for a million tokens, an image,
 * a second. Never a factor.
 */
import { useQuery } from "@connectrpc/connect-query";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { type ModelPrices, type Price, PriceState } from "../../../gen/uas/billing/v1/price_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import {
  CancelBilling,
  type Model,
  type ModelPrice,
  type ModelPriceTier,
} from "../../../gen/uas/inference/v1/model_pb.ts";
import type { Texts } from "../common/language.tsx";
import { priceText } from "../common/money.ts";
import { periodText } from "../common/time.ts";

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
export function cheapestTextModel(prices: readonly ModelPrices[] | undefined): string | undefined {
  const priced = (prices ?? []).flatMap((each) => {
    const price = currentPrice(each);
    return price === undefined || price.output === ""
      ? []
      : [{ modelKey: each.modelKey, cost: Number(price.input || 0) + Number(price.output) }];
  });
  return priced.toSorted((one, other) => one.cost - other.cost)[0]?.modelKey;
}

/** The models of this gateway. */
export function useModels() {
  return useQuery(
    InferenceService.method.listModels,
    { pageSize: modelsMax },
    { staleTime: 60_000, select: ({ models }) => models },
  );
}

/** One price. */
interface PriceLine {
  readonly name: string;
  readonly price: string;
  readonly per: string;
}

type TokenPrice = Pick<
  ModelPriceTier,
  "input" | "cachedInput" | "cacheWrite" | "output" | "reasoning"
>;

/** What is charged, by unit. */
export function priceLines(
  price: (TokenPrice & Partial<Pick<ModelPrice, "image" | "second" | "request">>) | undefined,
  { models: text, calls }: Texts,
): readonly PriceLine[] {
  if (price === undefined) return [];
  const lines: readonly (readonly [string, string | undefined, string])[] = [
    [text.input, price.input, text.perMillion],
    [text.cached, price.cachedInput, text.perMillion],
    [
      calls.units[3] ?? "",
      price.cacheWrite === price.input ? "" : price.cacheWrite,
      text.perMillion,
    ],
    [text.output, price.output, text.perMillion],
    [
      calls.units[5] ?? "",
      price.reasoning === price.output ? "" : price.reasoning,
      text.perMillion,
    ],
    ["", price.image, text.perImage],
    ["", price.second, text.perSecond],
    ["", price.request, text.perRequest],
  ];
  return lines.flatMap(([name, value = "", per]) =>
    value === "" ? [] : [{ name, price: priceText(value), per }],
  );
}

/** A limit and its name. */
type LimitRow = readonly [name: string, value: string];

/** Those that a model has. */
export function limitRows(
  {
    maxOutputTokens,
    deadlineMs,
    cancelBilling,
  }: Pick<Model, "maxOutputTokens" | "deadlineMs" | "cancelBilling">,
  { models: text }: Texts,
): LimitRow[] {
  const rows: LimitRow[] = [];
  if (maxOutputTokens > 0)
    rows.push([text.maxOutput, text.tokens(maxOutputTokens.toLocaleString())]);
  rows.push([text.deadline, periodText(deadlineMs)]);
  const isBilled = cancelBilling === CancelBilling.UPSTREAM;
  rows.push([text.cancelled, isBilled ? text.cancelBilled : text.cancelFree]);
  return rows;
}
