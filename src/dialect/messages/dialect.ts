/** Messages: request bodies, replies, stream events and errors, between bytes and meaning. */
import { type DescMessage, isMessage, type JsonObject, type Message } from "@bufbuild/protobuf";
import {
  GetModelResponseSchema,
  ListModelsResponseSchema,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { pageSizeMax } from "../../core/limits.ts";
import { invalid } from "../../core/validation.ts";
import type { TextDialect } from "../dialect.ts";
import { anthropicModelJson, modelListJson } from "../model-json.ts";
import { decodeMessagesError, decodeMessagesReply } from "./decode-reply.ts";
import { decodeMessagesRequest } from "./decode-request.ts";
import { MessagesStreamDecoder } from "./decode-stream.ts";
import { encodeMessagesReply } from "./encode-reply.ts";
import { encodeMessagesRequest } from "./encode-request.ts";
import { messagesStops } from "./encode-settings.ts";
import { MessagesStreamEncoder } from "./encode-stream.ts";
import { messagesErrorBody, relayMessagesError } from "./errors.ts";
import { guardMessages } from "./guard.ts";
import { messagesBetas, messagesHeaders } from "./members.ts";
import { sentHeaders } from "../features/member-class.ts";
import { readMessagesRequest } from "./read-request.ts";
import { addedMessagesText, MessagesStreamRelay, relayMessagesReply } from "./relay.ts";
import { carriesSeals } from "../turns/seal.ts";

/** This style's names for fields of the contract. */
const memberNames: Readonly<Record<string, string>> = {
  stop: "stop_sequences",
  max_output_tokens: "max_tokens",
  end_user: "metadata.user_id",
  reasoning: "thinking",
  "reasoning.mode": "thinking.type",
  "reasoning.effort": "output_config.effort",
  "reasoning.budget_tokens": "thinking.budget_tokens",
  "reasoning.summary": "thinking.display",
  response_format: "output_config.format",
  "response_format.strict": "output_config.format",
  parallel_tool_calls: "tool_choice.disable_parallel_tool_use",
  cache_hint: "cache_control",
  "turns.reasoning": "messages.thinking",
};

export const messages: TextDialect = {
  word: "messages",
  requestIdHeaders: ["x-request-id", "request-id"],
  forwardedHeaders: new Set(sentHeaders(messagesHeaders)),
  betas: { header: "anthropic-beta", known: messagesBetas },
  isLimitRequired: true,
  keepAlive: Buffer.from('event: ping\ndata: {"type": "ping"}\n\n'),
  usageEvents: { types: ["message_delta"], within: "" },
  tokenCount: { required: ["messages"], body: (tokens) => ({ input_tokens: tokens }) },
  memberNames,
  carriesSeals,
  readRequest: readMessagesRequest,
  relayReply: relayMessagesReply,
  relayStream: (options) => new MessagesStreamRelay(options),
  decodeRequest: decodeMessagesRequest,
  encodeRequest: encodeMessagesRequest,
  sentStops: messagesStops,
  guard: guardMessages,
  decodeReply: decodeMessagesReply,
  encodeReply: encodeMessagesReply,
  decodeStream: () => new MessagesStreamDecoder(),
  addedTextBytes: addedMessagesText,
  encodeStream: (options) => new MessagesStreamEncoder(options),
  decodeError: decodeMessagesError,
  errorBody: messagesErrorBody,
  relayError: relayMessagesError,
  queryFields: messagesQueryFields,
  replyBody: messagesReplyBody,
};

/** The bodies of RPCs that are no text generation: models. */
function messagesReplyBody(schema: DescMessage, message: Message): JsonObject {
  if (isMessage(message, ListModelsResponseSchema))
    return modelListJson(message, anthropicModelJson);
  if (isMessage(message, GetModelResponseSchema) && message.model !== undefined) {
    return anthropicModelJson(message.model);
  }
  throw new TypeError(`messages have no form for ${schema.typeName}`);
}

/**
 * The fields of a List request that the style's `limit`, `after_id` and `before_id` set.
 *
 * @throws GatewayError INVALID_REQUEST, naming the parameter
 */
function messagesQueryFields(query: JsonObject): JsonObject {
  const { limit, after_id: afterId, before_id: beforeId } = query;
  const fields: JsonObject = {};
  if (limit !== undefined) fields["page_size"] = count(limit);
  if (afterId !== undefined) fields["after_key"] = text("after_id", afterId);
  if (beforeId !== undefined) fields["before_key"] = text("before_id", beforeId);
  if (afterId && beforeId) {
    throw invalid("after_id", "after_id: send either after_id or before_id, not both");
  }
  return fields;
}

function count(value: unknown): number {
  const size = typeof value === "string" && /^\d{1,9}$/.test(value) ? Number(value) : 0;
  if (size >= 1 && size <= pageSizeMax) return size;
  throw invalid("limit", `limit: send a whole number from 1 to ${pageSizeMax}`);
}

/** One that occurs twice in the query is a list. */
function text(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw invalid(name, `${name}: send it once`);
}
