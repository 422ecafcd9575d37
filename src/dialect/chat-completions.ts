/** Chat completions: request bodies, replies, stream events and errors, between bytes and meaning. */
import { type DescMessage, isMessage, type JsonObject, type Message } from "@bufbuild/protobuf";
import {
  GetModelResponseSchema,
  ListModelsResponseSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import type { Model } from "../../gen/uas/inference/v1/model_pb.ts";
import type { GatewayError } from "../errors.ts";
import { readChatRequest } from "./chat-completions-request.ts";
import { ChatStreamRelay, relayChatReply } from "./chat-completions-relay.ts";
import type { RelayOptions, TextDialect } from "./dialect.ts";
import { errorBody } from "./error-body.ts";

export const chatCompletions: TextDialect = {
  word: "chat-completions",
  forwardedHeaders: new Set(["accept", "openai-beta"]),
  keepAlive: Buffer.from(": keep-alive\n\n"),
  readRequest: readChatRequest,
  relayReply: relayChatReply,
  relayStream: (options: RelayOptions) => new ChatStreamRelay(options),
  errorBody,
  errorEvent: (error: GatewayError) => Buffer.from(`data: ${JSON.stringify(errorBody(error))}\n\n`),
  replyBody(schema: DescMessage, message: Message): JsonObject {
    if (isMessage(message, ListModelsResponseSchema)) {
      return { object: "list", data: message.models.map(modelJson) };
    }
    if (isMessage(message, GetModelResponseSchema) && message.model !== undefined) {
      return modelJson(message.model);
    }
    throw new TypeError(`chat completions have no form for ${schema.typeName}`);
  },
};

/** `created` is 0: when the vendor made the model is not known here, and the style wants a number. */
function modelJson(model: Model): JsonObject {
  return { id: model.modelKey, object: "model", created: 0, owned_by: "uas" };
}
