/**
 * The models of the gateway with their prices and limits, as people compare them: USD for a million
 * tokens, an image, a second. Never a factor.
 */
import { useQuery } from "@connectrpc/connect-query";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import {
  type ModelPrices,
  PriceState,
  type PriceVersion,
} from "../../../gen/uas/billing/v1/price_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { CancelBilling, type Model } from "../../../gen/uas/inference/v1/model_pb.ts";
import { priceUnits, type UnitKey } from "../../../src/config/price-units.ts";
import { type Texts, useText } from "../common/language.tsx";
import { priceText } from "../common/money.ts";
import { periodText } from "../common/time.ts";
import { FilterSelect } from "../ui/filter-bar.tsx";
import { Badge, Time } from "../ui/show.tsx";
import { millis } from "../common/contract.ts";
import type { ImagePrice, Price, PriceTier } from "../../../gen/uas/type/v1/price_pb.ts";

/** The most models that are fetched. */
const modelsMax = 1_000;

/** The price that is valid now. `undefined`: the model is no longer configured. */
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

/** The cheapest text model, for examples. `undefined` while they are loaded, or there is none. */
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

/** The price of one unit. */
interface PriceLine {
  readonly name: string;
  readonly price: string;
  readonly per: string;
}

/** A price of the contract. */
export type AnyPrice = Price | PriceTier;

/** The units whose names are shorter here than on a receipt. */
const shortNames: ReadonlyMap<UnitKey, "input" | "cached" | "output"> = new Map([
  ["input", "input"],
  ["cachedInput", "cached"],
  ["output", "output"],
]);

/** The lines of a price: one for each unit that has one. */
export function priceLines(
  price: AnyPrice | undefined,
  { models: text, calls }: Texts,
): readonly PriceLine[] {
  if (price === undefined) return [];
  const images = "images" in price ? price.images : undefined;
  const prices: Partial<Record<UnitKey, string>> = price;
  return priceUnits.flatMap(({ key, word, whole, per }) => {
    const { [key]: value = "" } = prices;
    // A price that equals its default is not shown.
    if (value === "" || (whole !== undefined && value === prices[whole])) return [];
    const short = shortNames.get(key);
    const name = short === undefined ? (calls.units[word] ?? "") : text[short];
    const lowest = key === "image" ? lowestOf(images) : undefined;
    const range = lowest === undefined ? "" : `${priceText(lowest)}–`;
    return [{ name, price: range + priceText(value), per: text.per[per] }];
  });
}

/** The lowest price of images; `undefined`: all have the same. */
function lowestOf(images: readonly ImagePrice[] = []): string | undefined {
  const [first, ...others] = images.toSorted(
    (one, other) => Number(one.price) - Number(other.price),
  );
  return others.length === 0 ? undefined : first?.price;
}

/** A price in a cell of a table: its lines side by side, as far as there is room. */
export function PriceCell({ price }: { price: AnyPrice | undefined }) {
  const texts = useText();
  return (
    <ul className="flex flex-wrap justify-end gap-x-5 gap-y-0.5">
      {priceLines(price, texts).map((line) => (
        <li key={line.name} className="whitespace-nowrap">
          <Line line={line} />
        </li>
      ))}
    </ul>
  );
}

/** The price in a details view, one line per unit. */
export function PriceLines({ price }: { price: AnyPrice | undefined }) {
  const texts = useText();
  return priceLines(price, texts).map((line) => (
    <p key={line.name}>
      <Line line={line} />
    </p>
  ));
}

function Line({ line: { name, price, per } }: { line: PriceLine }) {
  return (
    <>
      <span className="text-muted">{name}</span> {price}{" "}
      <span className="text-xs text-muted">{per}</span>
    </>
  );
}

/**
 * The past, current and scheduled prices of a model, newest first. @param hasIds whether it shows
 * the ids of versions
 */
export function PriceHistory({
  versions,
  hasIds = false,
}: {
  versions: readonly PriceVersion[];
  hasIds?: boolean;
}) {
  const { models: text } = useText();
  return (
    <section>
      <h3 className="mb-3 font-semibold">{text.history}</h3>
      <ol className="flex flex-col gap-3">
        {versions.toReversed().map(({ version, state, fromTime, loadTime, price }) => (
          <li
            key={`${version} ${state}`}
            className="rounded-xl border border-line px-4 py-3 text-[0.8125rem]"
          >
            <div className="mb-1.5 flex flex-wrap items-center justify-between gap-3">
              <span className="flex items-center gap-2">
                <Badge tone={state === PriceState.CURRENT ? "good" : "neutral"}>
                  {text.states[state]}
                </Badge>
                {hasIds && <span className="font-mono text-xs text-muted">{version}</span>}
              </span>
              <span className="text-xs text-muted">
                {text.from} <Time time={fromTime ?? loadTime} />
              </span>
            </div>
            <PriceLines price={price} />
          </li>
        ))}
      </ol>
    </section>
  );
}

/**
 * A choice of one configured model, or of all. A chosen model stays offered when it is no longer
 * configured.
 */
export function ModelFilter({
  value,
  onChoose,
  ...shown
}: {
  value: string | undefined;
  onChoose: (model: string | undefined) => void;
  isLabelHidden?: boolean;
  className?: string;
}) {
  const { common } = useText();
  const { data } = usePrices();
  const models = new Set([
    ...(data ?? []).map(({ modelKey }) => modelKey),
    ...(value === undefined ? [] : [value]),
  ]);
  return (
    <FilterSelect
      {...shown}
      label={common.model}
      any={common.anyModel}
      value={value}
      choices={[...models].map((model) => ({ value: model, label: model }))}
      onChoose={onChoose}
    />
  );
}

/** A limit and its name. */
type LimitRow = readonly [name: string, value: string];

/** The limits of a model, for customers and operators alike. */
export function limitRows(
  {
    maxOutputTokens,
    deadline,
    cancelBilling,
  }: Pick<Model, "maxOutputTokens" | "deadline" | "cancelBilling">,
  { models: text }: Texts,
): LimitRow[] {
  const rows: LimitRow[] = [];
  if (maxOutputTokens > 0)
    rows.push([text.maxOutput, text.tokens(maxOutputTokens.toLocaleString())]);
  rows.push([text.deadline, periodText(millis(deadline))]);
  const isBilled = cancelBilling === CancelBilling.UPSTREAM;
  rows.push([text.cancelled, isBilled ? text.cancelBilled : text.cancelFree]);
  return rows;
}
