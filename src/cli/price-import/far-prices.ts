/** Warns of costs and prices that are far from a public list: most are a wrong unit or a typo. */
import type { Config, DatedPrice, ModelConfig, RouteConfig } from "../../config/config.ts";
import { pathText } from "../../config/document.ts";
import { priceUnits } from "../../config/price-units.ts";
import { priceAt } from "../../config/price.ts";
import { namesUnit, unitPrice } from "../../config/unit-prices.ts";
import { formatUsd } from "../../core/money.ts";
import { readQuote } from "./quote.ts";
import { PriceRefusal, type PriceSource } from "./source.ts";
import { providerOf } from "./vendor-names.ts";

/** Prices that differ by more than this factor are reported. */
const factorMax = 20n;

/**
 * One warning for each cost and price that is over 20 times the list's, or under a twentieth.
 * Prices of 0 are meant.
 *
 * @param nowMs milliseconds since 1970: only what applies now is compared
 */
export function farWarnings(config: Config, source: PriceSource, nowMs: number): readonly string[] {
  return [...config.models.values()].flatMap((model) => {
    const path = pathText(["models", model.key]);
    const place = config.places?.get(path) ?? config.source;
    const found = model.routes.flatMap((route) => {
      const listed = listedPrices(config, { source, model, route, nowMs });
      if (listed === undefined) return [];
      const head = `${route.vendor} ${route.model}`;
      return [
        ...farUnits("price", model.prices, { listed, nowMs, head }),
        ...farUnits("cost", route.costs ?? [], { listed, nowMs, head }),
      ];
    });
    return [...new Set(found)].map((text) => `${place} ${path}: ${text}`);
  });
}

interface Compared {
  readonly source: PriceSource;
  readonly model: ModelConfig;
  readonly route: RouteConfig;
  readonly nowMs: number;
}

/** The prices of the list for a route; undefined if it has none that can be read. */
function listedPrices(
  { vendors }: Config,
  { source, model, route, nowMs }: Compared,
): readonly DatedPrice[] | undefined {
  const vendor = vendors.get(route.vendor);
  if (vendor === undefined || vendor.kind === "demo") return undefined;
  try {
    const { id } = providerOf(vendor, source.format);
    const entry = source.find(id, route.model);
    return entry && readQuote(entry, { format: source.format, type: model.type, nowMs }).prices;
  } catch (error) {
    if (error instanceof PriceRefusal) return undefined;
    throw error;
  }
}

function farUnits(
  key: "price" | "cost",
  written: readonly DatedPrice[],
  against: {
    readonly listed: readonly DatedPrice[];
    readonly nowMs: number;
    readonly head: string;
  },
): readonly string[] {
  const { listed, nowMs, head } = against;
  if (written.length === 0) return [];
  const [own, list] = [priceAt(written, nowMs), priceAt(listed, nowMs)];
  return priceUnits.flatMap((unit) => {
    if (!namesUnit(own, unit.key) || !namesUnit(list, unit.key)) return [];
    const nanos = unitPrice(own, unit, 0) ?? 0n;
    const usual = unitPrice(list, unit, 0) ?? 0n;
    if (nanos === 0n || usual === 0n) return [];
    if (nanos <= usual * factorMax && nanos * factorMax >= usual) return [];
    return [
      `the ${key} of ${unit.name}, ${formatUsd(nanos)}, is far from what ${head} costs in the public list, ${formatUsd(usual)}: check the unit and the decimal point`,
    ];
  });
}
