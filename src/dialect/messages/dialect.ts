/** Messages: request bodies, replies, stream events and errors, between bytes and meaning. */
import type { TextDialect } from "../dialect.ts";
import { carriesSeals } from "../seal.ts";
import { guardMessages } from "./guard.ts";
import { decodeMessagesError, decodeMessagesReply } from "./decode-reply.ts";
import { decodeMessagesRequest } from "./decode-request.ts";
import { MessagesStreamDecoder } from "./decode-stream.ts";
import { encodeMessagesReply } from "./encode-reply.ts";
import { encodeMessagesRequest } from "./encode-request.ts";
import { MessagesStreamEncoder } from "./encode-stream.ts";
import { messagesErrorBody } from "./error-body.ts";
import { messagesQueryFields } from "./query-fields.ts";
import { readMessagesRequest } from "./read-request.ts";
import { MessagesStreamRelay, relayMessagesReply } from "./relay.ts";
import { messagesReplyBody } from "./reply-body.ts";

/** What this style calls the contract's fields. */
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
  forwardedHeaders: new Set(["accept", "anthropic-version", "anthropic-beta"]),
  isLimitRequired: true,
  keepAlive: Buffer.from('event: ping\ndata: {"type": "ping"}\n\n'),
  tokenCount: { required: ["messages"], body: (count) => ({ input_tokens: count }) },
  memberNames,
  carriesSeals,
  readRequest: readMessagesRequest,
  relayReply: relayMessagesReply,
  relayStream: (options) => new MessagesStreamRelay(options),
  decodeRequest: decodeMessagesRequest,
  encodeRequest: encodeMessagesRequest,
  guard: guardMessages,
  decodeReply: decodeMessagesReply,
  encodeReply: encodeMessagesReply,
  decodeStream: () => new MessagesStreamDecoder(),
  encodeStream: (options) => new MessagesStreamEncoder(options),
  decodeError: decodeMessagesError,
  errorBody: messagesErrorBody,
  queryFields: messagesQueryFields,
  replyBody: messagesReplyBody,
};
