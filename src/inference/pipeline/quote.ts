/** Finds the routes that can serve a call, its price, and its maximum cost. */
import { stateWaitMs } from "../../config/limits.ts";
import type { UnitUsage } from "../../billing/prices/price.ts";
import type { MaxUsage } from "../../billing/prices/pricing.ts";
import type { PriceConfig } from "../../config/config.ts";
import type { BilledFeatures } from "../../dialect/billed-features.ts";
import { RequestTokens } from "../tokens/request-tokens.ts";
import { withTimeout } from "../../core/async.ts";
import type { Chunk, PlannedRoute, PreparedCall } from "./adapter.ts";
import { unsupportedByModel } from "./failures.ts";
import { type HoldPlan, planHold } from "./hold-plan.ts";
import type { ReadCall } from "./read.ts";

/** A call whose cost is bounded. */
export interface Quoted<Out extends Chunk> extends ReadCall<Out> {
  /** The routes that can serve the call, in order. */
  readonly routes: readonly PlannedRoute[];
  /** The request for the first route, encoded before money is held, so that an invalid request costs no hold;
   * `undefined`: that route's vendor is not configured. */
  readonly first: PreparedCall | undefined;
  readonly price: PriceConfig;
  readonly tokens: RequestTokens;
  /** Plans the hold for this many input tokens. */
  readonly planFor: (inputTokens: number) => HoldPlan;
}

/** Quotes a call. @throws GatewayError INVALID_REQUEST where no vendor of the model can serve it */
export async function quote<Out extends Chunk>(readCall: ReadCall<Out>): Promise<Quoted<Out>> {
  const { call, model, deps } = readCall;
  let { request } = readCall;
  const { upstream, counter, pricing } = deps;
  let routes = request.plan() ?? upstream.plan(model, request.dialect, request.operation);
  const recalled = request.recall(routes);
  if (recalled !== undefined) ({ request, routes } = await withTimeout(stateWaitMs, recalled));
  const [route] = routes;
  if (route === undefined) throw unsupportedByModel(model.key);
  const first = route.dialect === undefined ? undefined : request.prepare(model, route);
  const { text } = request;
  const { body, source, size, features } = first ?? {};
  const tokens = new RequestTokens({ text, routes, body, source, size, counter });
  const price = pricing.priceAt(model, call.startMs);
  const { maxOutputTokens: limit = model.maxOutputTokens } = text;
  // A vendor that ignores the limit may generate up to the model's maximum (R-MON-12).
  const isUnlimited = routes.some((planned) => deps.unlimitedRoutes.has(planned.route));
  const outputLimit = isUnlimited ? Math.max(limit, model.maxOutputTokens) : limit;
  // An unlimited stream first holds what nearly all streams cost, then grows.
  const isUnboundedStream =
    text.stream && (text.maxOutputTokens === undefined || request.isLimitRequired);
  const maxTokens = outputLimit * text.choices;
  const firstTokens = isUnboundedStream ? model.holdOutputTokens * text.choices : maxTokens;
  const { units } = text;
  const { discountBp } = call;
  const planFor = (inputTokens: number): HoldPlan =>
    planHold({
      maxTokens,
      firstTokens,
      priceOf: (outputTokens) =>
        pricing.hold(price, maxUsage(units, features, { inputTokens, outputTokens }), discountBp),
    });
  return { ...readCall, request, routes, first, price, tokens, planFor };
}

/** The maximum usage of a request with these tokens, and what it asks for beyond text. */
export function maxUsage(
  units: UnitUsage | undefined,
  features: BilledFeatures | undefined,
  { inputTokens, outputTokens }: Required<Pick<MaxUsage, "inputTokens" | "outputTokens">>,
): MaxUsage {
  if (features === undefined) return { ...units, inputTokens, outputTokens };
  const { edits: _, unreported: __, toolInputTokens, ...most } = features;
  return { ...units, ...most, inputTokens: inputTokens + toolInputTokens, outputTokens };
}
