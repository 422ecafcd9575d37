/**
 * Chat completions: request bodies, replies, stream events and errors, between bytes and meaning.
 */
import { isMessage, type DescMessage, type JsonObject, type Message } from "@bufbuild/protobuf";
import {
  GetModelResponseSchema,
  ListModelsResponseSchema,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { errorBody } from "../codec.ts";
import type { RelayOptions, TextDialect } from "../dialect.ts";
import { relayOpenaiError } from "../vendor-error.ts";
import { modelJson, modelListJson } from "../model-json.ts";
import { decodeChatError, decodeChatReply } from "./decode-reply.ts";
import { decodeChatRequest } from "./decode-request.ts";
import { ChatStreamDecoder } from "./decode-stream.ts";
import { encodeChatReply, joinChatReplies } from "./encode-reply.ts";
import { chatStops, encodeChatRequest } from "./encode-request.ts";
import { ChatChoicesEncoder, ChatStreamEncoder } from "./encode-stream.ts";
import { guardChat } from "./guard.ts";
import { sentHeaders } from "../features/member-class.ts";
import { openaiBetas, openaiHeaders } from "./members.ts";
import { readChatRequest } from "./read-request.ts";
import { addedChatText, ChatStreamRelay, relayChatReply } from "./relay.ts";

export const chatCompletions: TextDialect = {
  word: "chat-completions",
  forwardedHeaders: new Set(sentHeaders(openaiHeaders)),
  betas: { header: "openai-beta", known: openaiBetas },
  keepAlive: Buffer.from(": keep-alive\n\n"),
  usageEvents: { types: [], within: "" },
  readRequest: readChatRequest,
  relayReply: relayChatReply,
  relayStream: (options: RelayOptions) => new ChatStreamRelay(options),
  memberNames: {
    max_output_tokens: "max_completion_tokens",
    reasoning: "reasoning_effort",
    "reasoning.effort": "reasoning_effort",
    "response_format.strict": "response_format.json_schema.strict",
    "response_format.description": "response_format.json_schema.description",
    end_user: "user",
    cache_key: "prompt_cache_key",
    cache_hint: "prompt_cache_breakpoint",
    "turns.name": "messages.name",
    "turns.reasoning": "messages.reasoning_content",
  },
  requestIdHeaders: ["x-request-id"],
  decodeRequest: decodeChatRequest,
  encodeRequest: encodeChatRequest,
  sentStops: chatStops,
  guard: guardChat,
  decodeReply: decodeChatReply,
  encodeReply: encodeChatReply,
  joinChoices: joinChatReplies,
  decodeStream: () => new ChatStreamDecoder(),
  addedTextBytes: addedChatText,
  encodeStream: (options) => new ChatStreamEncoder(options),
  encodeChoices: (options, choices) => new ChatChoicesEncoder(options, choices),
  decodeError: decodeChatError,
  errorBody,
  relayError: relayOpenaiError,
  replyBody: chatReplyBody,
};

/** The bodies of RPCs that are no text generation: models. */
function chatReplyBody(schema: DescMessage, message: Message): JsonObject {
  if (isMessage(message, ListModelsResponseSchema)) return modelListJson(message, modelJson);
  if (isMessage(message, GetModelResponseSchema) && message.model !== undefined) {
    return modelJson(message.model);
  }
  throw new TypeError(`chat completions have no form for ${schema.typeName}`);
}
