import { type DescMessage, isMessage, type JsonObject, type Message } from "@bufbuild/protobuf";
import {
  GetModelResponseSchema,
  ListModelsResponseSchema,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import type { Model } from "../../../gen/uas/inference/v1/model_pb.ts";

/** The bodies of RPCs that are no text generation: models, as its SDK pages through them. */
export function messagesReplyBody(schema: DescMessage, message: Message): JsonObject {
  if (isMessage(message, ListModelsResponseSchema)) {
    const data = message.models.map(modelJson);
    const ids = message.models.map((model) => model.modelKey);
    const [first = null] = ids;
    const hasMore = message.nextPageToken !== "";
    return { data, has_more: hasMore, first_id: first, last_id: ids.at(-1) ?? null };
  }
  if (isMessage(message, GetModelResponseSchema) && message.model !== undefined) {
    return modelJson(message.model);
  }
  throw new TypeError(`messages have no form for ${schema.typeName}`);
}

/** When the vendor made the model is not known here, and the style wants a date. */
function modelJson({ modelKey, name, maxOutputTokens }: Model): JsonObject {
  return {
    type: "model",
    id: modelKey,
    display_name: name || modelKey,
    created_at: "1970-01-01T00:00:00Z",
    lifecycle: "active",
    max_tokens: maxOutputTokens || null,
    max_input_tokens: null,
    capabilities: null,
  };
}
