/** Prices for customers, from what the routes of a model cost. */
import type { DatedPrice, PriceConfig, PriceTier, TokenPrices } from "../../config/config.ts";
import { isTokenUnit, type PriceUnit, priceUnits, tokenUnits } from "../../config/price-units.ts";
import { priceAt } from "../../config/price.ts";
import { amountNanosMax } from "../../core/money.ts";
import { moments } from "../../config/price-dates.ts";
import { namesUnit, tierLimits, unitPrice } from "../../config/unit-prices.ts";
import { addMargin, type MarginPpm } from "./decimal.ts";
import { PriceRefusal } from "./source.ts";

/**
 * Returns the prices of a model: for each unit, tier and moment the cost of its most expensive
 * route with the margin. They are rounded up to a nano-USD, so that no route costs more than its
 * model's price.
 *
 * @param routes the costs of each route by time, at least one route
 * @throws PriceRefusal if the routes are charged by different units, or a price exceeds what can be
 * booked
 */
export function pricesWithMargin(
  routes: readonly (readonly DatedPrice[])[],
  marginPpm: MarginPpm,
): readonly DatedPrice[] {
  return moments(routes).map((fromMs) => {
    const costs = routes.map((route) => priceAt(route, fromMs));
    checkUnits(costs);
    return { fromMs, price: highestPrice(costs, (nanos) => withMargin(nanos, marginPpm)) };
  });
}

function withMargin(costNanos: bigint, marginPpm: MarginPpm): bigint {
  const nanos = addMargin(costNanos, marginPpm);
  if (nanos <= amountNanosMax) return nanos;
  throw new PriceRefusal("refused", "the price is too large", "choose a smaller margin");
}

/**
 * With a price by image and another by token, a call would be charged both: its route is not known
 * in advance.
 */
function checkUnits(costs: readonly PriceConfig[]): void {
  const sets = costs.map((cost) => chargedUnits(cost).join(", "));
  const [first = "", other] = [...new Set(sets)];
  if (other === undefined) return;
  const reason = `its routes cost by different units: ${first} and ${other}`;
  throw new PriceRefusal("conflicting", reason, "write the price by hand");
}

function chargedUnits(cost: PriceConfig): readonly string[] {
  return priceUnits
    .filter(({ key, whole }) => whole === undefined && key !== "request" && namesUnit(cost, key))
    .map(({ name }) => name);
}

type Price = (costNanos: bigint) => bigint;

function highestPrice(costs: readonly PriceConfig[], price: Price): PriceConfig {
  const named = priceUnits.filter(({ key }) => costs.some((cost) => namesUnit(cost, key)));
  const at = (units: readonly PriceUnit[], above: number): PriceConfig => {
    const found = units.map((unit) => [unit.key, price(highestUnit(costs, unit, above))]);
    return { ...noPrice, ...Object.fromEntries(found) };
  };
  const tokens = named.filter(({ key }) => isTokenUnit(key));
  const limits = tierLimits(costs).filter((above) => above > 0);
  const tiers = limits.map((above): PriceTier => {
    const band = at(tokens, above);
    const units = Object.fromEntries(tokenUnits.map(({ key }) => [key, band[key]]));
    return { ...(units as unknown as TokenPrices), above };
  });
  return { ...at(named, 0), ...(tiers.length > 0 && { tiers }) };
}

function highestUnit(costs: readonly PriceConfig[], unit: PriceUnit, above: number): bigint {
  return costs
    .map((cost) => unitPrice(cost, unit, above) ?? 0n)
    .reduce((most, nanos) => (nanos > most ? nanos : most), 0n);
}

const noPrice = Object.fromEntries(
  priceUnits.map(({ key }) => [key, undefined]),
) as unknown as PriceConfig;
