/** Finds the models and routes that can serve a call, its price, and its maximum cost. */
import { stateWaitMs } from "../../core/limits.ts";
import type { MaxUsage } from "../../billing/prices/pricing.ts";
import type { UnitUsage } from "../../billing/prices/cost.ts";
import type { ImageForm, PriceConfig, ModelConfig } from "../../config/config.ts";
import { imagePriceOf } from "../../config/price.ts";
import { possiblePrices } from "../../config/tier-prices.ts";
import { invalid } from "../../core/validation.ts";
import type { BilledFeatures } from "../../dialect/features/billed-features.ts";
import { RequestTokens } from "../../tokens/request-tokens.ts";
import { withTimeout } from "../../core/async.ts";
import type { Chunk } from "./adapter.ts";
import type { FallbackModel, PlannedRoute } from "../../routing/planned-route.ts";
import type { PreparedCall } from "../../routing/prepared-call.ts";
import { tooLong, unsupportedByModel } from "./failures.ts";
import { type HoldPlan, planHold } from "./hold-plan.ts";
import type { ReadCall } from "./admit.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { formatUsd } from "../../core/money.ts";
import type { Upstream } from "../../routing/upstream.ts";
import { applyPreferences, type RoutePreferences } from "../../routing/preferences.ts";

const noOthers: readonly FallbackModel[] = [];

/** A call whose cost is bounded. */
export interface Quoted<Out extends Chunk> extends ReadCall<Out> {
  /** The routes that can serve the call, in order. */
  readonly routes: readonly PlannedRoute[];
  /** The routes of each fallback model, in order: they are used if all `routes` fail. */
  readonly fallbacks: readonly (readonly PlannedRoute[])[];
  /**
   * The request for the first route, encoded before money is held, so that an invalid request costs
   * no hold; undefined means that route's vendor is not configured.
   */
  readonly first: PreparedCall | undefined;
  readonly price: PriceConfig;
  /**
   * The price with its table of images, of which `price` is one entry. Absent without such a table.
   */
  readonly imagePrices?: PriceConfig | undefined;
  readonly tokens: RequestTokens;
  /** Plans the hold for this many input tokens. */
  readonly planFor: (inputTokens: number) => HoldPlan;
}

/**
 * Quotes a call. Returns no promise, unless the request refers to stored objects.
 *
 * @throws GatewayError INVALID_REQUEST if no vendor of the model can serve it
 */
export function quote<Out extends Chunk>(
  readCall: ReadCall<Out>,
): Promise<Quoted<Out>> | Quoted<Out> {
  const { model, request, deps } = readCall;
  const planned = request.plan() ?? deps.upstream.plan(model, request.dialect, request.operation);
  requireSpoken(model, planned, deps.upstream);
  const recalled = request.recall(planned);
  if (recalled === undefined) return quoteRoutes(readCall, planned, false);
  // Objects that a vendor has stored for the request exist at that vendor only.
  return withTimeout(stateWaitMs, recalled).then((found) =>
    quoteRoutes({ ...readCall, request: found.request }, found.routes, true),
  );
}

/**
 * Refuses a model that its vendors offer in their own form only. @throws GatewayError
 * INVALID_REQUEST
 */
function requireSpoken(
  { key }: ModelConfig,
  planned: readonly PlannedRoute[],
  { targets }: Pick<Upstream, "targets">,
): void {
  if (planned.some(({ dialect }) => dialect !== undefined)) return;
  for (const { route } of planned) {
    const prefix = targets.vendor(route.vendor)?.config.nativePrefix;
    if (prefix === undefined) continue;
    const text = `The model \`${key}\` is offered in its vendor's own form only: send the request below ${prefix}`;
    throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "model" });
  }
}

/** @param isBound whether the request is bound to the planned routes */
function quoteRoutes<Out extends Chunk>(
  readCall: ReadCall<Out>,
  planned: readonly PlannedRoute[],
  isBound: boolean,
): Promise<Quoted<Out>> | Quoted<Out> {
  const { call, context, request, model, deps } = readCall;
  const { counter, pricing } = deps;
  const whole = pricing.priceAt(model, call.startMs, context.caller.priceList);
  const price = whole.images === undefined ? whole : requestedPrice(readCall, whole);
  const chosen = chooseModels(readCall, { planned, price, isBound });
  const { routes, fallbacks, first } = prepareFirst(readCall, chosen);
  const [route] = routes;
  if (route === undefined) throw unsupportedByModel(model.key);
  const firstModel = route.fallback?.model ?? model;
  const { text } = request;
  const { body, source, size, features } = first ?? {};
  const hasFallbacks = fallbacks.length > 0;
  const all = hasFallbacks ? [...routes, ...fallbacks.flat()] : routes;
  const tokens = new RequestTokens({ text, routes: all, body, source, size, counter });
  // The hold covers the most expensive of the models.
  const others = hasFallbacks ? fallbacks.flatMap(([each]) => each?.fallback ?? []) : noOthers;
  const modelMax = others.reduce(
    (most, { model: { maxOutputTokens } }) => Math.max(most, maxOutputTokens),
    firstModel.maxOutputTokens,
  );
  const { maxOutputTokens: limit = modelMax } = text;
  // A vendor that ignores the limit may generate up to the model's maximum (R-MON-12).
  const isUnlimited = all.some((each) =>
    deps.unlimitedRoutes.has(each.route, call.start.accountId),
  );
  const outputLimit = isUnlimited ? Math.max(limit, modelMax) : limit;
  // An unlimited stream first holds what nearly all streams cost, then grows.
  const isUnboundedStream =
    text.stream && (text.maxOutputTokens === undefined || request.isLimitRequired);
  const maxTokens = outputLimit * text.choices;
  const firstTokens = isUnboundedStream ? model.holdOutputTokens * text.choices : maxTokens;
  const { units } = text;
  const { discountBp } = call;
  const prices = [route.fallback?.price ?? price, ...others.map((other) => other.price)].flatMap(
    (each) => possiblePrices(each, features?.serviceTiers),
  );
  const planFor = (inputTokens: number): HoldPlan =>
    planHold({
      maxTokens,
      inputTokens: inputTokens + (features?.toolInputTokens ?? 0),
      firstTokens,
      priceOf(outputTokens) {
        const usage = maxUsage(units, features, { inputTokens, outputTokens });
        let amount = 0n;
        for (const each of prices) {
          const needed = pricing.hold(each, usage, discountBp);
          if (needed > amount) amount = needed;
        }
        return amount;
      },
    });
  const quoted = { ...readCall, routes, fallbacks, first, price, tokens, planFor };
  const found = price === whole ? quoted : { ...quoted, imagePrices: whole };
  if (request.operation !== undefined || !tokens.isOverlong) return found;
  return refuseOverlong(found).then(() => found);
}

/**
 * Prepares the request for the first route that can serve it, and leaves out the routes and models
 * before that one.
 *
 * @throws GatewayError INVALID_REQUEST of the first route if none can serve it
 */
function prepareFirst<Out extends Chunk>(
  { model, request }: ReadCall<Out>,
  chosen: ChosenModels,
): ChosenModels & Pick<Quoted<Out>, "first"> {
  let refusal: GatewayError | undefined;
  for (const [stage, routes] of [chosen.routes, ...chosen.fallbacks].entries()) {
    const fallbacks = stage === 0 ? chosen.fallbacks : chosen.fallbacks.slice(stage);
    for (const [index, route] of routes.entries()) {
      const usable = index === 0 ? routes : routes.slice(index);
      if (route.dialect === undefined) {
        if (refusal === undefined) return { routes: usable, fallbacks, first: undefined };
        continue;
      }
      try {
        const first = request.prepare(route.fallback?.model ?? model, route);
        return { routes: usable, fallbacks, first };
      } catch (error) {
        const isOfRequest =
          error instanceof GatewayError && error.code === ErrorCode.INVALID_REQUEST;
        if (!isOfRequest) throw error;
        refusal ??= error;
      }
    }
    // The next model is tried only after a refusal of this one.
    if (refusal === undefined) break;
  }
  if (refusal !== undefined) throw refusal;
  return { ...chosen, first: undefined };
}

/**
 * Refuses a request that certainly exceeds every route. If only the vendor can count its tokens,
 * the request is sent.
 * @throws GatewayError INVALID_REQUEST
 */
async function refuseOverlong<Out extends Chunk>({
  model,
  request,
  tokens,
  deps,
}: Quoted<Out>): Promise<void> {
  const inputTokens = await tokens.countedOverlong(deps.freeCounter);
  if (inputTokens === undefined) return;
  const { contextTokens } = tokens;
  const { maxOutputTokens } = request.text;
  const facts = { model: model.key, inputTokens, maxOutputTokens, contextTokens };
  throw tooLong({ ...facts, dialect: request.dialect });
}

/** @throws GatewayError INVALID_REQUEST if the model has no price for such images */
function requestedPrice<Out extends Chunk>(
  { request: { text } }: ReadCall<Out>,
  whole: PriceConfig,
): PriceConfig {
  const { imageForm = {} } = text;
  return imagePriceOf(whole, imageForm) ?? refuseImageForm(whole, imageForm);
}

/** Refuses images without a price. @throws GatewayError INVALID_REQUEST */
export function refuseImageForm({ images = [] }: PriceConfig, asked: ImageForm): never {
  const forms = images.map(
    ({ size = "any size", quality = "any quality" }) => `${size} in ${quality}`,
  );
  const name = images.some(({ size }) => size === asked.size) ? "quality" : "size";
  throw invalid(name, `the model has no price for such images; it has one for ${forms.join(", ")}`);
}

/** Returns the maximum usage of a request with these tokens, including units other than text. */
export function maxUsage(
  units: UnitUsage | undefined,
  features: BilledFeatures | undefined,
  { inputTokens, outputTokens }: Required<Pick<MaxUsage, "inputTokens" | "outputTokens">>,
): MaxUsage {
  if (features === undefined) return { ...units, inputTokens, outputTokens };
  const { edits: _, unreported: __, serviceTiers: ___, toolInputTokens, ...most } = features;
  return { ...units, ...most, inputTokens: inputTokens + toolInputTokens, outputTokens };
}

/** The routes of the first model, and of each fallback model, which is used if they all fail. */
export interface ChosenModels {
  readonly routes: readonly PlannedRoute[];
  readonly fallbacks: readonly (readonly PlannedRoute[])[];
}

interface Choice {
  /** All routes that can serve the request. */
  readonly planned: readonly PlannedRoute[];
  readonly price: PriceConfig;
  /** Whether the request is bound to the given routes. */
  readonly isBound: boolean;
}

const noFallbacks: readonly (readonly PlannedRoute[])[] = [];

/**
 * Applies the routing rules of the request and its model. @throws GatewayError if no route fits
 */
export function chooseModels<Out extends Chunk>(
  readCall: ReadCall<Out>,
  { planned, price, isBound }: Choice,
): ChosenModels {
  const { call, model, request, deps } = readCall;
  const { preferences, models } = request.wishes;
  const hasOthers = (models ?? model.fallbackModels) !== undefined;
  if (preferences === undefined && !hasOthers) return { routes: planned, fallbacks: noFallbacks };
  const areAllowed = preferences?.allowFallbacks !== false && !isBound;
  const others = areAllowed ? fallbackModels(readCall) : [];
  const stages = [
    { model, price, routes: planned },
    ...others.map((fallback) => ({
      ...fallback,
      routes: deps.upstream
        .plan(fallback.model, request.dialect, request.operation)
        .map((route) => ({ ...route, fallback })),
    })),
  ];
  const affordable = stages.filter((stage) => isWithin(stage.price, preferences?.maxPrice));
  if (affordable.length === 0) throw tooExpensive(stages);
  const facts = { targets: deps.upstream.targets, nowMs: call.startMs };
  const [routes = [], ...fallbacks] = affordable.map((stage) =>
    preferences === undefined ? stage.routes : applyPreferences(stage.routes, preferences, facts),
  );
  return { routes, fallbacks };
}

/**
 * Returns the fallback models that the request names, which must exist; else the configured ones
 * that the key may use.
 */
function fallbackModels<Out extends Chunk>({
  model,
  request,
  context,
  call,
  deps,
}: ReadCall<Out>): readonly FallbackModel[] {
  const { admission, catalogue, pricing } = deps;
  const { models } = request.wishes;
  const keys = models ?? model.fallbackModels ?? [];
  const found = keys.flatMap((key): readonly ModelConfig[] => {
    if (key === model.key) return [];
    if (models !== undefined) return [admission.textModel(context.caller, key)];
    return catalogue.list(context.caller).filter((each) => each.key === key);
  });
  const { priceList } = context.caller;
  return found.map((each) => ({
    model: each,
    price: pricing.priceAt(each, call.startMs, priceList),
  }));
}

function isWithin(
  { input = 0n, output = 0n }: PriceConfig,
  maxPrice: RoutePreferences["maxPrice"],
): boolean {
  if (maxPrice === undefined) return true;
  const { input: inputMax = input, output: outputMax = output } = maxPrice;
  return input <= inputMax && output <= outputMax;
}

function tooExpensive(stages: readonly FallbackModel[]): GatewayError {
  const sum = ({ price }: FallbackModel): bigint => (price.input ?? 0n) + (price.output ?? 0n);
  const [cheapest] = stages.toSorted((a, b) => (sum(a) < sum(b) ? -1 : 1));
  const { input = 0n, output = 0n } = cheapest?.price ?? {};
  const prices = `${formatUsd(input)} USD for 1,000,000 input tokens and ${formatUsd(output)} USD for output tokens`;
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `max_price is below every route: the cheapest is \`${cheapest?.model.key}\` at ${prices}`,
    { param: "provider.max_price" },
  );
}
