/**
 * Models as JSON. The SDKs of OpenAI and Anthropic list models on the same path in different forms, and both ignore
 * unknown members. This form has the members of both (R-TXT-7), so that clients with the other's headers, or none,
 * can read it. Only `capabilities` differs.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ListModelsResponse } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import type { Model } from "../../gen/uas/inference/v1/model_pb.ts";
import { modelFeatures } from "./features/model-features.ts";
import { priceJson, typeWord } from "./platform.ts";

/** A page of models. @param form that of a model */
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
 * A model. Both forms require a date: since when the gateway offers it. Where that is not known, the epoch, as Anthropic
 * writes it for unknown dates. Behind the members of both come those that neither has: what the model produces, the
 * paths that it answers, what it does beside its type, and its price.
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
 * A model for clients of Anthropic's form, which gives `capabilities` members of its own: they are
 * what the model's vendor knows. The form has null if they are not known.
 */
export function anthropicModelJson(model: Model): JsonObject {
  return { ...modelJson(model), capabilities: null };
}

/** Whether a model can do each thing that any model may do beside its type. */
function capabilitiesJson({ features }: Model): JsonObject {
  return Object.fromEntries(modelFeatures.map((name) => [name, features.includes(name)]));
}
