/**
 * Models as JSON. The SDKs of OpenAI and Anthropic list models on the same path in different forms, and both ignore
 * unknown members. This form has the members of both (R-TXT-7), so that clients with the other's headers, or none,
 * can read it.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ListModelsResponse } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import type { Model } from "../../../gen/uas/inference/v1/model_pb.ts";

/** A page of models. */
export function modelListJson({ models, hasMore }: ListModelsResponse): JsonObject {
  return {
    object: "list",
    data: models.map(modelJson),
    has_more: hasMore,
    first_id: models.at(0)?.modelKey ?? null,
    last_id: models.at(-1)?.modelKey ?? null,
  };
}

/**
 * A model. Both forms require a release date, which is unknown here: the epoch, as Anthropic writes it for unknown
 * dates.
 */
export function modelJson({ modelKey, name, maxOutputTokens }: Model): JsonObject {
  return {
    id: modelKey,
    object: "model",
    created: 0,
    owned_by: "uas",
    type: "model",
    display_name: name || modelKey,
    created_at: "1970-01-01T00:00:00Z",
    lifecycle: "active",
    line: null,
    deprecated_at: null,
    retires_at: null,
    max_input_tokens: null,
    max_tokens: maxOutputTokens || null,
    capabilities: null,
  };
}
