/** Responses: request bodies, replies, stream events and errors, between bytes and meaning. */
import {
  isMessage,
  type DescMessage,
  type JsonObject,
  type Message,
  type JsonValue,
} from "@bufbuild/protobuf";
import {
  CancelResponseResponseSchema,
  DeleteResponseResponseSchema,
  GetResponseResponseSchema,
  ListInputItemsResponseSchema,
} from "../../../gen/uas/inference/v1/response_service_pb.ts";
import { sentHeaders } from "../features/member-class.ts";
import { openaiBetas, openaiHeaders } from "../chat-completions/members.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { chatCompletions } from "../chat-completions/dialect.ts";
import { errorBody } from "../codec.ts";
import type { TextDialect } from "../dialect.ts";
import { relayOpenaiError } from "../vendor-error.ts";
import { carriesSeals } from "../turns/seal.ts";
import { decodeResponsesError, decodeResponsesReply } from "./decode-reply.ts";
import { decodeResponsesRequest } from "./decode-request.ts";
import { ResponsesStreamDecoder } from "./decode-stream.ts";
import { encodeResponsesReply } from "./encode-reply.ts";
import { encodeResponsesRequest } from "./encode-request.ts";
import { ResponsesStreamEncoder } from "./encode-stream.ts";
import { guardResponses } from "./guard.ts";
import { readResponsesRequest } from "./read-request.ts";
import { addedResponsesText, relayResponsesReply, ResponsesStreamRelay } from "./relay.ts";

export const responses: TextDialect = {
  word: "responses",
  requestIdHeaders: ["x-request-id"],
  forwardedHeaders: new Set(sentHeaders(openaiHeaders)),
  betas: { header: "openai-beta", known: openaiBetas },
  keepAlive: Buffer.from(": keep-alive\n\n"),
  usageEvents: { types: ["response.completed", "response.incomplete"], within: "response" },
  tokenCount: {
    required: [],
    body: (tokens) => ({ object: "response.input_tokens", input_tokens: tokens }),
  },
  memberNames: {
    turns: "input",
    messages: "input",
    response_format: "text.format",
    "response_format.strict": "text.format.strict",
    "response_format.description": "text.format.description",
    "tools.namespace_description": "tools.description",
    cache_hint: "prompt_cache_breakpoint",
    "turns.reasoning": "input.reasoning",
    verbosity: "text.verbosity",
    end_user: "safety_identifier",
    cache_key: "prompt_cache_key",
  },
  carriesSeals,
  readRequest: readResponsesRequest,
  relayReply: relayResponsesReply,
  relayStream: (options) => new ResponsesStreamRelay(options),
  decodeRequest: decodeResponsesRequest,
  encodeRequest: encodeResponsesRequest,
  // The style has no member for them.
  sentStops: () => [],
  guard: guardResponses,
  decodeReply: decodeResponsesReply,
  encodeReply: encodeResponsesReply,
  decodeStream: () => new ResponsesStreamDecoder(),
  addedTextBytes: addedResponsesText,
  encodeStream: (options) => new ResponsesStreamEncoder(options),
  decodeError: decodeResponsesError,
  errorBody,
  relayError: relayOpenaiError,
  queryFields: responsesQueryFields,
  replyBody: responsesReplyBody,
};

/**
 * Bodies of RPCs that do not generate text: stored responses. Their JSON is sent unchanged; models
 * and the like have the form of chat completions.
 */
function responsesReplyBody(schema: DescMessage, message: Message): JsonObject | Uint8Array {
  if (isMessage(message, GetResponseResponseSchema)) return message.response;
  if (isMessage(message, CancelResponseResponseSchema)) return message.response;
  if (isMessage(message, ListInputItemsResponseSchema)) return message.page;
  if (isMessage(message, DeleteResponseResponseSchema)) {
    return { id: message.responseId, object: "response", deleted: true };
  }
  return chatCompletions.replyBody(schema, message);
}

/**
 * Returns the fields that the parameters of a query set. SDKs write lists as `include[]`; a
 * repeated parameter is invalid.
 *
 * @throws GatewayError INVALID_REQUEST, naming the parameter
 */
function responsesQueryFields(query: JsonObject): JsonObject {
  const { limit, after, order, stream, starting_after: startingAfter } = query;
  if (stream !== undefined && stream !== "false" && stream !== "true") {
    const text = "stream: send true or false, once";
    throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "stream" });
  }
  const fields: JsonObject = { include: listOf(query["include[]"] ?? query["include"]) };
  if (limit !== undefined) fields["limit"] = count(limit);
  if (after !== undefined) fields["after"] = single("after", after);
  if (startingAfter !== undefined) fields["starting_after"] = eventNumber(startingAfter);
  if (order !== undefined) fields["order"] = single("order", order);
  return fields;
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

function count(value: JsonValue): number {
  if (typeof value === "string" && /^[1-9]\d{0,2}$/.test(value)) return Number(value);
  const text = "limit: send a whole number from 1 to 100";
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "limit" });
}

function eventNumber(value: JsonValue): number {
  if (typeof value === "string" && /^\d{1,9}$/.test(value)) return Number(value);
  const text = "starting_after: send the sequence_number of an event";
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "starting_after" });
}

function single(name: string, value: JsonValue): string {
  if (typeof value === "string") return value;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, `${name}: send it once`, { param: name });
}
