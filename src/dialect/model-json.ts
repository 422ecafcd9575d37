/**
 * Models as JSON. The SDKs of OpenAI and Anthropic list models on the same path in different forms,
 * and both ignore unknown members. This form has the members of both (R-TXT-7), so that clients
 * with the other's headers, or none, can read it. Only `capabilities` differs.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ListModelsResponse } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import type { Model } from "../../gen/uas/inference/v1/model_pb.ts";
import { modelFeatures } from "./features/model-features.ts";
import { priceJson, typeWord } from "./platform.ts";

/** Returns a page of models. @param form converts one model */
export function modelListJson(
  { models, hasMore }: ListModelsResponse,
  form: (model: Model) => JsonObject,
): JsonObject {
  return {
    object: "list",
    data: models.map(form),
    has_more: hasMore,
    first_id: models.at(0)?.modelKey ?? null,
    last_id: models.at(-1)?.modelKey ?? null,
  };
}

/**
 * Converts a model. Both forms require a date: the time since when the gateway offers it, or the
 * epoch if unknown, as Anthropic writes it. The members of both forms are followed by members that
 * neither has: output types, paths, features and price.
 */
export function modelJson(model: Model): JsonObject {
  const { modelKey, name, maxOutputTokens, offerTime, type } = model;
  const seconds = Number(offerTime?.seconds ?? 0n);
  return {
    id: modelKey,
    object: "model",
    created: seconds,
    owned_by: "uas",
    type: "model",
    display_name: name || modelKey,
    created_at: new Date(seconds * 1_000).toISOString().replace(".000Z", "Z"),
    lifecycle: "active",
    line: null,
    deprecated_at: null,
    retires_at: null,
    max_input_tokens: model.maxContextTokens || null,
    max_tokens: maxOutputTokens || null,
    capabilities: capabilitiesJson(model),
    model_type: typeWord(type),
    endpoints: model.endpoints,
    features: model.features,
    price: priceJson(model),
  };
}

/**
 * Converts a model for clients of Anthropic's form. Its `capabilities` describe the vendor's model;
 * the form has null if they are unknown.
 */
export function anthropicModelJson(model: Model): JsonObject {
  return { ...modelJson(model), capabilities: null };
}

/** States for each feature whether a model has it. */
function capabilitiesJson({ features }: Model): JsonObject {
  return Object.fromEntries(modelFeatures.map((name) => [name, features.includes(name)]));
}
