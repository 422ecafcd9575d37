/** The models that can take a call, with their routes: the requested one, then those that replace it. */
import type { ModelConfig, PriceConfig } from "../../config/config.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { formatUsd } from "../../core/money.ts";
import { applyPreferences, type RoutePreferences } from "../routing/preferences.ts";
import type { Chunk, FallbackModel, PlannedRoute } from "./adapter.ts";
import type { ReadCall } from "./read.ts";

/** The routes of the first model, and of each that takes the call when those all fail. */
export interface ChosenModels {
  readonly routes: readonly PlannedRoute[];
  readonly fallbacks: readonly (readonly PlannedRoute[])[];
}

interface Choice<Out extends Chunk> extends ReadCall<Out> {
  readonly price: PriceConfig;
  /** Whether the request is bound to the given routes. */
  readonly isBound: boolean;
}

const noFallbacks: readonly (readonly PlannedRoute[])[] = [];

/** Applies what the request and the model say about routing. @throws GatewayError where nothing fits */
export function chooseModels<Out extends Chunk>(
  choice: Choice<Out>,
  planned: readonly PlannedRoute[],
): ChosenModels {
  const { model, request, deps, price, isBound } = choice;
  const { preferences, models } = request.wishes;
  const hasOthers = (models ?? model.fallbackModels) !== undefined;
  if (preferences === undefined && !hasOthers) return { routes: planned, fallbacks: noFallbacks };
  const areAllowed = preferences?.allowFallbacks !== false && !isBound;
  const others = areAllowed ? fallbackModels(choice) : [];
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
  const { targets } = deps.upstream;
  const [routes = [], ...fallbacks] = affordable.map((stage) =>
    preferences === undefined ? stage.routes : applyPreferences(stage.routes, preferences, targets),
  );
  return { routes, fallbacks };
}

/** The models of the request, which must exist; else those of the configuration that the key may use. */
function fallbackModels<Out extends Chunk>({
  model,
  request,
  context,
  call,
  deps,
}: Choice<Out>): readonly FallbackModel[] {
  const { catalogue, pricing } = deps;
  const { models } = request.wishes;
  const keys = models ?? model.fallbackModels ?? [];
  const found = keys.flatMap((key): readonly ModelConfig[] => {
    if (key === model.key) return [];
    if (models !== undefined) return [catalogue.authorizeText(context.caller, key)];
    return catalogue.list(context.caller).filter((each) => each.key === key);
  });
  return found.map((each) => ({ model: each, price: pricing.priceAt(each, call.startMs) }));
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
