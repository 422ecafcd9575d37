/**
 * Models in JSON. OpenAI's and Anthropic's SDK list them on one path, each in a form of its own; both
 * ignore what they do not know. So there is one form with the members of both (R-TXT-7): a client that
 * sends the other's headers, or none, finds what it needs.
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

/** A model. When its vendor released it is not known here, and both forms want a date: the epoch, as
 * Anthropic writes it where it does not know. */
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
