/** Chat completions: request bodies, replies, stream events and errors, between bytes and meaning. */
import { type DescMessage, isMessage, type JsonObject, type Message } from "@bufbuild/protobuf";
import {
  GetModelResponseSchema,
  ListModelsResponseSchema,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import type { Model } from "../../../gen/uas/inference/v1/model_pb.ts";
import { readChatRequest } from "./read-request.ts";
import { ChatStreamRelay, relayChatReply } from "./relay.ts";
import type { RelayOptions, TextDialect } from "../dialect.ts";
import { errorBody } from "../error-body.ts";
import { decodeChatError, decodeChatReply } from "./decode-reply.ts";
import { decodeChatRequest } from "./decode-request.ts";
import { ChatStreamDecoder } from "./decode-stream.ts";
import { encodeChatReply } from "./encode-reply.ts";
import { encodeChatRequest } from "./encode-request.ts";
import { ChatStreamEncoder } from "./encode-stream.ts";

export const chatCompletions: TextDialect = {
  word: "chat-completions",
  forwardedHeaders: new Set(["accept", "openai-beta"]),
  keepAlive: Buffer.from(": keep-alive\n\n"),
  readRequest: readChatRequest,
  relayReply: relayChatReply,
  relayStream: (options: RelayOptions) => new ChatStreamRelay(options),
  memberNames: { max_output_tokens: "max_completion_tokens" },
  requestIdHeaders: ["x-request-id"],
  decodeRequest: decodeChatRequest,
  encodeRequest: encodeChatRequest,
  decodeReply: decodeChatReply,
  encodeReply: encodeChatReply,
  decodeStream: () => new ChatStreamDecoder(),
  encodeStream: (options) => new ChatStreamEncoder(options),
  decodeError: decodeChatError,
  errorBody,
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
