/**
 * Prices recorded calls again under another configuration: what customers would have paid, and what
 * vendors would have charged. Pure.
 */
import { isDeepStrictEqual } from "node:util";
import type {
  Config,
  ImageForm,
  ModelConfig,
  PriceConfig,
  RouteConfig,
} from "../../config/config.ts";
import { imagePriceOf, priceAt } from "../../config/price.ts";
import type { ServiceTier } from "../../core/service-tiers.ts";
import { type CallUsage, callCost } from "../../billing/prices/cost.ts";
import { priceVersion } from "../../billing/prices/price-form.ts";
import { pricesFor } from "../../billing/prices/pricing.ts";
import { routePriorities } from "../../routing/choice.ts";

/** A recorded call, as far as its price depends on it. */
export interface PricedCall {
  readonly model: string;
  readonly vendor: string;
  /** The version of the price that it was charged at. */
  readonly priceVersion: string;
  readonly usage: CallUsage;
  /** Hundredths of a percent. */
  readonly discountBp: number;
  /** The price list of its account; empty if it has none. */
  readonly priceList: string;
  /** Whether its usage was charged; other calls were free. */
  readonly isCharged: boolean;
  /** Whether the vendor charged for it. */
  readonly isBilled: boolean;
}

/** The price of a call under another configuration, in nano-USD. */
export interface Repriced {
  readonly revenue: bigint;
  /** Undefined if a route has no cost in the configuration. */
  readonly vendorCost: bigint | undefined;
}

/** The part of a price that a call was charged at: a service tier, or a form of images. */
interface Variant {
  readonly tier?: ServiceTier | undefined;
  readonly form?: ImageForm | undefined;
}

/** Prices calls again. */
export class Repricing {
  readonly #models: ReadonlyMap<string, ModelConfig>;
  readonly #before: ReadonlyMap<string, ModelConfig>;
  readonly #atMs: number;
  /** By model and price version. */
  readonly #variants = new Map<string, ReadonlyMap<string, Variant>>();

  /**
   * @param before the configuration at whose prices the calls were charged
   * @param after the configuration to price them by
   * @param atMs the moment whose dated prices count; `Infinity`: the last ones
   */
  constructor(before: Pick<Config, "models">, after: Pick<Config, "models">, atMs: number) {
    this.#before = before.models;
    this.#models = after.models;
    this.#atMs = atMs;
  }

  /** The price of a call; undefined if the configuration has no such model. */
  price(call: PricedCall): Repriced | undefined {
    const model = this.#models.get(call.model);
    if (model === undefined) return undefined;
    const variant = this.#variantsOf(call.model).get(call.priceVersion) ?? {};
    const price = variantOf(priceAt(pricesFor(model, call.priceList), this.#atMs), variant);
    return {
      revenue: call.isCharged ? callCost(price, call.usage, call.discountBp) : 0n,
      vendorCost: call.isBilled ? this.#vendorCost(model, call, variant) : 0n,
    };
  }

  #vendorCost(model: ModelConfig, call: PricedCall, variant: Variant): bigint | undefined {
    const isKept = hasSameRoutes(model, this.#before.get(call.model));
    const same = isKept ? model.routes.find(({ vendor }) => vendor === call.vendor) : undefined;
    const routes = same === undefined ? firstRoutes(model.routes) : [{ route: same, share: 1 }];
    let sum = 0;
    for (const { route, share } of routes) {
      if (route.costs === undefined) return undefined;
      const cost = variantOf(priceAt(route.costs, this.#atMs), variant);
      sum += share * Number(callCost(cost, call.usage));
    }
    return BigInt(Math.floor(sum));
  }

  #variantsOf(key: string): ReadonlyMap<string, Variant> {
    const known = this.#variants.get(key) ?? variantsOf(this.#before.get(key));
    this.#variants.set(key, known);
    return known;
  }
}

/** Whether calls of a model go to the same places as before. */
function hasSameRoutes(after: ModelConfig, before: ModelConfig | undefined): boolean {
  const placesOf = ({ routes }: ModelConfig): unknown =>
    routes.map(({ vendor, model, weight, priority }) => ({ vendor, model, weight, priority }));
  return before !== undefined && isDeepStrictEqual(placesOf(after), placesOf(before));
}

/** The routes that are used first, each with its share of calls. */
function firstRoutes(routes: readonly RouteConfig[]) {
  const priorities = routePriorities(routes);
  const first = Math.min(...priorities);
  const candidates = routes.filter((_, index) => priorities[index] === first);
  const weights = candidates.map(({ weight = 1 }) => weight);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return candidates.map((route, index) => ({
    route,
    share: sum === 0 ? 1 / candidates.length : (weights[index] ?? 0) / sum,
  }));
}

/** The variants of all prices of a model, by the versions of what calls are charged at. */
function variantsOf(model: ModelConfig | undefined): ReadonlyMap<string, Variant> {
  const found = new Map<string, Variant>();
  const add = (price: PriceConfig | undefined, variant: Variant): void => {
    if (price === undefined) return;
    const version = priceVersion(price);
    if (!found.has(version)) found.set(version, variant);
  };
  const lists = [...(model?.listPrices?.values() ?? [])].flat();
  for (const { price } of [...(model?.prices ?? []), ...lists]) {
    add(price, {});
    for (const form of price.images ?? []) add(imagePriceOf(price, form), { form });
    for (const [tier, own] of Object.entries(price.serviceTiers ?? {})) {
      add(own, { tier: tier as ServiceTier });
    }
  }
  return found;
}

/** The part of a price for a variant; the price itself if it has no such part. */
function variantOf(price: PriceConfig, { tier, form }: Variant): PriceConfig {
  const tiered = (tier && price.serviceTiers?.[tier]) ?? price;
  return (form && imagePriceOf(tiered, form)) ?? tiered;
}
