/** Platform JSON: the contract's own messages, with the documented words for enum values. */
import {
  type DescMessage,
  isMessage,
  type JsonObject,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import {
  ListModelsResponseSchema,
  type ListModelsResponse,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import {
  type Model,
  type ModelType,
  ModelTypeSchema,
} from "../../gen/uas/inference/v1/model_pb.ts";
import type { Dialect } from "./dialect.ts";
import { errorBody } from "./error-body.ts";

export const platform: Dialect = {
  word: "platform",
  requestIdHeaders: ["x-request-id"],
  errorBody,
  replyBody(schema: DescMessage, message: Message): JsonObject {
    if (isMessage(message, ListModelsResponseSchema)) return listModels(message);
    return toJson(schema, message, { alwaysEmitImplicit: true }) as JsonObject;
  },
};

function listModels(response: ListModelsResponse): JsonObject {
  const { models, nextPageToken } = response;
  return { models: models.map(modelJson), ...(nextPageToken && { nextPageToken }) };
}

function modelJson(model: Model): JsonObject {
  const prices = Object.entries(model.price ?? {}).filter(
    (entry): entry is [string, string] =>
      !entry[0].startsWith("$") && typeof entry[1] === "string" && entry[1] !== "",
  );
  return {
    modelKey: model.modelKey,
    name: model.name,
    type: typeWord(model.type),
    price: Object.fromEntries(prices),
    maxOutputTokens: model.maxOutputTokens || null,
  };
}

/** The documented word of a model type: the value's name without its prefix, `TEXT`. */
function typeWord(type: ModelType): string {
  return ModelTypeSchema.values.find((value) => value.number === type)?.localName ?? "";
}
