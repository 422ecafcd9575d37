/** Warnings of prices below the cost of a route. */
import { formatUsd } from "../core/money.ts";
import { serviceTiers } from "../core/service-tiers.ts";
import type { Config, ModelConfig, PriceConfig, RouteConfig } from "./config.ts";
import { pathText } from "./document.ts";
import { moments, momentText, upcoming } from "./price-dates.ts";
import { type PriceUnit, priceUnits } from "./price-units.ts";
import { priceAt } from "./price.ts";
import { namesUnit, tierLimits, unitPrice } from "./unit-prices.ts";

/**
 * One warning for each unit whose price is below the cost of a route, now or at a later moment that
 * the configuration names: `uas.yaml:7 models.small: …`. Routes without a cost are not compared.
 *
 * @param nowMs milliseconds since 1970: prices that have ended by then do not count
 */
export function lossWarnings(config: Config, nowMs: number): readonly string[] {
  return [...config.models.values()].flatMap((model) => {
    const path = pathText(["models", model.key]);
    const place = config.places?.get(path) ?? config.source;
    const losses = model.routes.flatMap((route) => routeLosses(model, route, nowMs));
    return [...new Set(losses)].map((loss) => `${place} ${path}: ${loss}`);
  });
}

function routeLosses(model: ModelConfig, route: RouteConfig, nowMs: number): readonly string[] {
  if (route.costs === undefined) return [];
  const prices = upcoming(model.prices, nowMs);
  const costs = upcoming(route.costs, nowMs);
  const head = `route ${route.vendor} ${route.model}`;
  return moments([prices, costs]).flatMap((fromMs) => {
    const price = priceAt(prices, fromMs);
    const cost = priceAt(costs, fromMs);
    const since = Number.isFinite(fromMs) ? `from ${momentText(fromMs)} ` : "";
    const tiers = serviceTiers.flatMap((tier) => {
      const own = [price.serviceTiers?.[tier], cost.serviceTiers?.[tier]] as const;
      return own[0] === undefined || own[1] === undefined ? [] : [[tier, own[0], own[1]] as const];
    });
    return [["", price, cost] as const, ...tiers].flatMap(([tier, ...compared]) =>
      priceUnits.flatMap((unit) => {
        const loss = firstLoss(unit, ...compared);
        return loss === undefined ? [] : [since + lossText(unit, head, { ...loss, tier })];
      }),
    );
  });
}

/** A unit whose price is below its cost, in calls that read more tokens than `above`. */
interface Loss {
  readonly above: number;
  readonly priceNanos: bigint;
  readonly costNanos: bigint;
  /** Whether the cost names another unit, which is the default of this one. */
  readonly isDefault: boolean;
}

/**
 * The loss of the shortest calls that have one. Defaults are compared if the price or the cost
 * departs from them.
 */
function firstLoss(unit: PriceUnit, price: PriceConfig, cost: PriceConfig): Loss | undefined {
  if (!namesUnit(price, unit.key) && !namesUnit(cost, unit.key)) return undefined;
  for (const above of tierLimits([price, cost])) {
    const priceNanos = unitPrice(price, unit, above);
    const costNanos = unitPrice(cost, unit, above);
    // A price in other units than the cost, such as `image` for a cost in tokens, cannot be
    // compared.
    if (priceNanos === undefined || costNanos === undefined || priceNanos >= costNanos) continue;
    return { above, priceNanos, costNanos, isDefault: !namesUnit(cost, unit.key) };
  }
  return undefined;
}

function lossText(
  { name, whole = "input" }: PriceUnit,
  head: string,
  { above, priceNanos, costNanos, isDefault, tier }: Loss & { readonly tier: string },
): string {
  const length = above === 0 ? "" : ` above ${above} tokens`;
  const unit = name + length + (tier === "" ? "" : ` at the tier ${tier}`);
  const source = isDefault ? `, the cost of ${whole}, as no cost of ${name} is given` : "";
  return `the price of ${unit}, ${formatUsd(priceNanos)}, is below the cost of ${head}, ${formatUsd(costNanos)}${source}: raise the price or correct the cost`;
}
