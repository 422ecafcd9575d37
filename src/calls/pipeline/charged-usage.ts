/**
 * Which part of a usage is charged, and at which price: by the tier that served the call and by
 * what the call is held for (R-MON-15).
 */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/prices/cost.ts";
import type { PriceConfig } from "../../config/config.ts";
import { possiblePrices, servedPrice } from "../../config/tier-prices.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { Chunk } from "./adapter.ts";
import type { Held } from "./hold.ts";
import { withinRequest } from "./metering.ts";
import { chargeablePart, isPlausible, limitTokensOf, plausibleFacts } from "./plausible.ts";

/** A call with a hold, and the route that answered it; undefined if none did. */
type Answered<Out extends Chunk> = Held<Out> & { readonly planned?: PlannedRoute | undefined };

/**
 * Returns the price of the service tier that served a call: the tier named by the reply, else the
 * most expensive tier that the request allows.
 */
export function priceOfTier<Out extends Chunk>(
  { call, first, deps: { pricing } }: Answered<Out>,
  price: PriceConfig,
  usage: Usage & UnitUsage,
): PriceConfig {
  // A fallback model may have no tiers, unlike the model before it.
  call.tierPrice = undefined;
  // The usual case.
  if (price.serviceTiers === undefined) return price;
  const served = servedPrice(price, usage.serviceTier);
  const possible = served ? [served] : possiblePrices(price, first?.features?.serviceTiers);
  const costOf = (each: PriceConfig): bigint => pricing.cost(each, usage, call.discountBp);
  const dearest = possible.reduce((most, each) => (costOf(each) > costOf(most) ? each : most));
  call.priceVersion = pricing.version(dearest);
  call.tierPrice = dearest;
  return dearest;
}

/**
 * Whether a call costs no more than its hold, as nearly every call does. A route that ignores
 * limits is held for more than the request allows.
 */
export function isWithinHold<Out extends Chunk>(
  { plan, request }: Answered<Out>,
  costNanos: bigint,
): boolean {
  const isHoldOfRequest = plan.maxTokens <= (limitTokensOf(request) ?? plan.maxTokens);
  return isHoldOfRequest && costNanos <= plan.maxNanos;
}

/** The part of a usage that can be true; the same usage if all of it can. */
export function plausibleTokens<Out extends Chunk>(
  { plan, request, model, planned, first }: Answered<Out>,
  usage: Usage,
  textBytes: number,
): Usage {
  const facts = plausibleFacts({
    request,
    model,
    route: planned?.route,
    features: first?.features,
    inputTokens: plan.inputTokens,
    maxTokens: plan.maxTokens,
    textBytes,
  });
  return isPlausible(usage, facts) ? usage : chargeablePart(usage, facts);
}

/** Implements {@link ReadRequest.plausible}: what will be charged. */
export function plausibleUsage<Out extends Chunk>(
  answered: Answered<Out>,
  usage: Usage,
  { textBytes, units }: { readonly textBytes: number; readonly units?: UnitUsage | undefined },
): Usage {
  const { call, first, price, deps } = answered;
  const used = withinRequest(usage, units, first?.features);
  const whole = units === undefined ? used : { ...used, ...units };
  const tierPrice = priceOfTier(answered, price, whole);
  const costNanos = deps.pricing.cost(tierPrice, whole, call.discountBp);
  if (isWithinHold(answered, costNanos)) return usage;
  const tokens = plausibleTokens(answered, used, textBytes);
  return tokens === used ? usage : tokens;
}
