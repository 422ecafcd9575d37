import { type DescMessage, isMessage, type JsonObject, type Message } from "@bufbuild/protobuf";
import {
  GetModelResponseSchema,
  ListModelsResponseSchema,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { modelJson, modelListJson } from "../model-json.ts";

/** The bodies of RPCs that are no text generation: models. */
export function chatReplyBody(schema: DescMessage, message: Message): JsonObject {
  if (isMessage(message, ListModelsResponseSchema)) return modelListJson(message);
  if (isMessage(message, GetModelResponseSchema) && message.model !== undefined) {
    return modelJson(message.model);
  }
  throw new TypeError(`chat completions have no form for ${schema.typeName}`);
}
