/** The models that customers can call, and which API keys may use them. */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  ListModelsRequest,
  ListModelsResponse,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import {
  CancelBilling,
  ModelSchema,
  ModelType,
  type Model,
} from "../../gen/uas/inference/v1/model_pb.ts";
import type { Config, ModelConfig, PriceConfig } from "../config/config.ts";
import { priceMessage } from "../config/price-message.ts";
import { pageSizeMax, taskRunMs } from "../core/limits.ts";
import { pricesFor } from "../billing/prices/pricing.ts";
import { priceUnits } from "../config/price-units.ts";
import { priceAt } from "../config/price.ts";
import type { Caller } from "../core/caller.ts";
import type { Clock } from "../core/clock.ts";
import { derived } from "../core/derived.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { nextPageToken, readPage } from "../core/pagination.ts";
import { type ModelFeature, modelFeatures } from "../dialect/features/model-features.ts";

/** Finds models for callers. */
export interface Catalogue {
  /** Finds a model by its public name, without access checks. Undefined if there is none. */
  find(key: string): ModelConfig | undefined;
  /**
   * Finds a model by its public name.
   *
   * @throws GatewayError MODEL_NOT_FOUND if there is none, ACCESS_DENIED if the key may not use it
   */
  authorize(caller: Caller, key: string): ModelConfig;
  /**
   * Like {@link Catalogue.authorize}, for text generation.
   *
   * @throws GatewayError also INVALID_REQUEST if the model generates something other than text
   */
  authorizeText(caller: Caller, key: string): ModelConfig;
  /** Lists the models that the caller may use, sorted by key. */
  list(caller: Caller): readonly ModelConfig[];
}

/** Creates the catalogue. @param config its models are read for each call */
export function createCatalogue(config: Pick<Config, "models">): Catalogue {
  const sorted = derived(
    () => config.models,
    (models) => [...models.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1)),
  );
  const catalogue: Catalogue = {
    find: (key) => config.models.get(key),
    authorize(caller, key) {
      const model = config.models.get(key);
      if (model === undefined) {
        throw new GatewayError(
          ErrorCode.MODEL_NOT_FOUND,
          `The model \`${shorten(key)}\` does not exist: name one of those that GET /v1/models lists`,
          { param: "model" },
        );
      }
      if (!canUse(caller, key)) {
        throw new GatewayError(
          ErrorCode.ACCESS_DENIED,
          `Model access denied: this API key may not use \`${key}\``,
          { param: "model" },
        );
      }
      return model;
    },
    authorizeText(caller, key) {
      const model = catalogue.authorize(caller, key);
      if (model.type === ModelType.TEXT) return model;
      const instead = otherUses.get(model.type) ?? "submit a task to POST /api/ai/tasks";
      const text = `The model \`${key}\` does not generate text: ${instead}`;
      throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "model" });
    },
    list: (caller) => sorted().filter((model) => canUse(caller, model.key)),
  };
  return catalogue;
}

/** Uses of models of other types, except tasks. */
const otherUses: ReadonlyMap<ModelType, string> = new Map([
  [ModelType.EMBEDDING, "send texts to POST /v1/embeddings"],
  [ModelType.RERANK, "send documents and a query to POST /v1/rerank"],
  [ModelType.MODERATION, "send texts to POST /v1/moderations"],
]);

function canUse(caller: Caller, key: string): boolean {
  return caller.kind !== "key" || caller.models === undefined || caller.models.has(key);
}

function shorten(key: string): string {
  return key.length <= 100 ? key : `${key.slice(0, 100)}…`;
}

/** Returns the time since when a model is offered; undefined if unknown. */
export type OfferedSince = (model: ModelConfig) => Date | undefined;

/** Returns the paths that a model serves. */
export type EndpointsOf = (model: ModelConfig) => string[];

/** Features are named like the unit whose price offers them. */
function featuresOf({ isReasoning = false }: ModelConfig, price: PriceConfig): ModelFeature[] {
  const priced = new Set(
    priceUnits
      .filter(({ key }) => price[key] !== undefined)
      .map(({ name }) => name.replace(/^tools\./, "")),
  );
  return modelFeatures.filter((feature) =>
    feature === "reasoning" ? isReasoning : priced.has(feature),
  );
}

/** The most that any route takes; 0 if one does not say. */
function contextOf({ routes }: ModelConfig): number {
  const limits = routes.map(({ maxContext = 0 }) => maxContext);
  return limits.includes(0) ? 0 : Math.max(...limits);
}

/** Facts about models that their configuration lacks. */
export interface ModelFacts {
  readonly offeredSince: OfferedSince;
  /** Default: no paths are listed. */
  readonly endpointsOf?: EndpointsOf;
  /** The price list of the account that reads. Default: the usual prices. */
  readonly priceList?: string | undefined;
  /** Decides which price is in force. */
  readonly clock: Pick<Clock, "now">;
}

/** Converts a model to the contract's message, with the price in force now. */
export function modelMessage(
  model: ModelConfig,
  { offeredSince, endpointsOf = () => [], priceList, clock }: ModelFacts,
): Model {
  const { key: modelKey, name, type, maxOutputTokens } = model;
  const { deadlineMs = taskRunMs, cancelBilling = CancelBilling.NONE } = model;
  const priceNow = priceAt(pricesFor(model, priceList), clock.now());
  const price = priceMessage(priceNow);
  const limits = { maxOutputTokens, deadline: durationFromMs(deadlineMs), cancelBilling };
  const since = offeredSince(model);
  const offerTime = since && timestampFromDate(since);
  const told = {
    endpoints: endpointsOf(model),
    maxContextTokens: contextOf(model),
    features: featuresOf(model, priceNow),
  };
  return create(ModelSchema, { modelKey, name, type, price, ...limits, offerTime, ...told });
}

/**
 * Returns one page of the model list, forward or backward.
 *
 * @param models the models that the caller may use, sorted by key
 * @throws GatewayError INVALID_REQUEST
 */
export function modelPage(
  models: readonly ModelConfig[],
  request: ListModelsRequest,
  facts: ModelFacts,
): Omit<ListModelsResponse, "$typeName" | "$unknown"> {
  const { pageToken, afterKey, beforeKey } = request;
  if ([pageToken, afterKey, beforeKey].filter((each) => each !== "").length > 1) {
    throw new GatewayError(
      ErrorCode.INVALID_REQUEST,
      "after_key: send only one of page_token, after_key and before_key",
      { param: "after_key" },
    );
  }
  const { limit, after = afterKey } = readPage(request, { defaultSize: pageSizeMax });
  const message = (model: ModelConfig): Model => modelMessage(model, facts);
  if (beforeKey !== "") {
    const before = models.filter(({ key }) => key < beforeKey);
    const shown = before.slice(-limit).map(message);
    return { models: shown, nextPageToken: "", hasMore: before.length > limit };
  }
  const rest = models.filter(({ key }) => key > after);
  const shown = rest.slice(0, limit);
  const hasMore = rest.length > limit;
  return {
    models: shown.map(message),
    nextPageToken: nextPageToken(hasMore ? shown.at(-1)?.key : undefined),
    hasMore,
  };
}
