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
import { chooseModels } from "./choose-models.ts";
import type { ReadCall } from "./read.ts";

/** A call whose cost is bounded. */
export interface Quoted<Out extends Chunk> extends ReadCall<Out> {
  /** The routes that can serve the call, in order. */
  readonly routes: readonly PlannedRoute[];
  /** The routes of each model that takes the call when those all fail, in order. */
  readonly fallbacks: readonly (readonly PlannedRoute[])[];
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
  let planned = request.plan() ?? upstream.plan(model, request.dialect, request.operation);
  const recalled = request.recall(planned);
  if (recalled !== undefined) {
    ({ request, routes: planned } = await withTimeout(stateWaitMs, recalled));
  }
  // What a vendor has stored for the request is at that vendor only.
  const isBound = recalled !== undefined;
  const price = pricing.priceAt(model, call.startMs);
  const { routes, fallbacks } = chooseModels({ ...readCall, request, price, isBound }, planned);
  const [route] = routes;
  if (route === undefined) throw unsupportedByModel(model.key);
  const firstModel = route.fallback?.model ?? model;
  const first = route.dialect === undefined ? undefined : request.prepare(firstModel, route);
  const { text } = request;
  const { body, source, size, features } = first ?? {};
  const all = fallbacks.length === 0 ? routes : [...routes, ...fallbacks.flat()];
  const tokens = new RequestTokens({ text, routes: all, body, source, size, counter });
  // The hold covers the most expensive of the models.
  const others = fallbacks.flatMap(([each]) => each?.fallback ?? []);
  const modelMax = others.reduce(
    (most, { model: { maxOutputTokens } }) => Math.max(most, maxOutputTokens),
    firstModel.maxOutputTokens,
  );
  const { maxOutputTokens: limit = modelMax } = text;
  // A vendor that ignores the limit may generate up to the model's maximum (R-MON-12).
  const isUnlimited = all.some((each) => deps.unlimitedRoutes.has(each.route));
  const outputLimit = isUnlimited ? Math.max(limit, modelMax) : limit;
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
      priceOf(outputTokens) {
        const usage = maxUsage(units, features, { inputTokens, outputTokens });
        let amount = pricing.hold(route.fallback?.price ?? price, usage, discountBp);
        for (const other of others) {
          const needed = pricing.hold(other.price, usage, discountBp);
          if (needed > amount) amount = needed;
        }
        return amount;
      },
    });
  return { ...readCall, request, routes, fallbacks, first, price, tokens, planFor };
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
