/** Responses: request bodies, replies, stream events and errors, between bytes and meaning. */
import type { TextDialect } from "../dialect.ts";
import { carriesSeals } from "../seal.ts";
import { guardResponses } from "./guard.ts";
import { errorBody } from "../error-body.ts";
import { decodeResponsesError, decodeResponsesReply } from "./decode-reply.ts";
import { decodeResponsesRequest } from "./decode-request.ts";
import { ResponsesStreamDecoder } from "./decode-stream.ts";
import { encodeResponsesReply } from "./encode-reply.ts";
import { encodeResponsesRequest } from "./encode-request.ts";
import { ResponsesStreamEncoder } from "./encode-stream.ts";
import { responsesQueryFields } from "./query-fields.ts";
import { readResponsesRequest } from "./read-request.ts";
import { relayResponsesReply, ResponsesStreamRelay } from "./relay.ts";
import { responsesReplyBody } from "./reply-body.ts";

export const responses: TextDialect = {
  word: "responses",
  requestIdHeaders: ["x-request-id"],
  forwardedHeaders: new Set(["accept", "openai-beta"]),
  keepAlive: Buffer.from(": keep-alive\n\n"),
  tokenCount: {
    required: [],
    body: (count) => ({ object: "response.input_tokens", input_tokens: count }),
  },
  memberNames: {
    turns: "input",
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
  guard: guardResponses,
  decodeReply: decodeResponsesReply,
  encodeReply: encodeResponsesReply,
  decodeStream: () => new ResponsesStreamDecoder(),
  encodeStream: (options) => new ResponsesStreamEncoder(options),
  decodeError: decodeResponsesError,
  errorBody,
  queryFields: responsesQueryFields,
  replyBody: responsesReplyBody,
};
