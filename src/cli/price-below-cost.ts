/** Finds models that lose money: their price is below what a route of theirs costs. */
import type { Config, ModelConfig, PriceConfig, RouteConfig } from "../config/config.ts";
import { priceAt } from "../config/price.ts";
import { formatUsd } from "../core/money.ts";
import { momentText, moments, upcoming } from "./price-dates.ts";
import { type PriceUnit, priceUnits } from "../config/price-units.ts";
import { namesUnit, tierLimits, unitPrice } from "./price-units.ts";

/**
 * One warning for each unit whose price is below the cost of a route, now or at a later moment that the
 * configuration names: `uas.yaml:7 models.small: …`. Routes without a cost are not compared.
 *
 * @param nowMs milliseconds since 1970: prices that have ended by then do not count
 */
export function lossWarnings(config: Config, nowMs: number): readonly string[] {
  return [...config.models.values()].flatMap((model) => {
    const path = `models.${model.key}`;
    const line = config.lines?.get(path);
    const place = line === undefined ? config.source : `${config.source}:${line}`;
    const losses = model.routes.flatMap((route) => routeLosses(model, route, nowMs));
    return [...new Set(losses)].map((loss) => `${place} ${path}: ${loss}`);
  });
}

function routeLosses(model: ModelConfig, route: RouteConfig, nowMs: number): readonly string[] {
  if (route.costs === undefined) return [];
  const [prices, costs] = [upcoming(model.prices, nowMs), upcoming(route.costs, nowMs)];
  const head = `route ${route.vendor} ${route.model}`;
  return moments([prices, costs]).flatMap((fromMs) => {
    const [price, cost] = [priceAt(prices, fromMs), priceAt(costs, fromMs)];
    const since = Number.isFinite(fromMs) ? `from ${momentText(fromMs)} ` : "";
    return priceUnits.flatMap((unit) => {
      const loss = firstLoss(unit, price, cost);
      return loss === undefined ? [] : [since + lossText(unit, head, loss)];
    });
  });
}

/** A unit whose price is below its cost, in calls that read more tokens than `above`. */
interface Loss {
  readonly above: number;
  readonly priceNanos: bigint;
  readonly costNanos: bigint;
}

/** The loss of the shortest calls that have one. Defaults are compared where the price or the cost departs from them. */
function firstLoss(unit: PriceUnit, price: PriceConfig, cost: PriceConfig): Loss | undefined {
  if (!namesUnit(price, unit.key) && !namesUnit(cost, unit.key)) return undefined;
  for (const above of tierLimits([price, cost])) {
    const priceNanos = unitPrice(price, unit, above);
    const costNanos = unitPrice(cost, unit, above);
    // A price in other units than the cost, such as `image` for a cost in tokens, cannot be compared.
    if (priceNanos === undefined || costNanos === undefined || priceNanos >= costNanos) continue;
    return { above, priceNanos, costNanos };
  }
  return undefined;
}

function lossText(
  { name }: PriceUnit,
  head: string,
  { above, priceNanos, costNanos }: Loss,
): string {
  const unit = above === 0 ? name : `${name} above ${above} tokens`;
  return `the price of ${unit}, ${formatUsd(priceNanos)}, is below the cost of ${head}, ${formatUsd(costNanos)}: raise the price or correct the cost`;
}
