/** What the JSON of a reply or of a stream's chunk tells beside its parts. */
import { ErrorCode } from "../../../gen/uas/error/v1/error_pb.ts";
import { type ReplyError, StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import {
  countAt,
  type JsonRecord,
  protoCountAt,
  recordAt,
  recordsAt,
  textAt,
} from "../json/value.ts";

/** How a reply ended. */
export interface Finish {
  readonly reason: StopReason;
  /** The vendor's explanation. Empty: none. */
  readonly detail: string;
}

const reasons: ReadonlyMap<string, StopReason> = new Map([
  ["STOP", StopReason.END],
  ["MAX_TOKENS", StopReason.LENGTH],
  ["CONTINUATION", StopReason.PAUSE],
  ["SAFETY", StopReason.CONTENT_FILTER],
  ["RECITATION", StopReason.CONTENT_FILTER],
  ["LANGUAGE", StopReason.CONTENT_FILTER],
  ["BLOCKLIST", StopReason.CONTENT_FILTER],
  ["PROHIBITED_CONTENT", StopReason.CONTENT_FILTER],
  ["SPII", StopReason.CONTENT_FILTER],
  ["IMAGE_SAFETY", StopReason.CONTENT_FILTER],
  ["IMAGE_PROHIBITED_CONTENT", StopReason.CONTENT_FILTER],
  ["IMAGE_RECITATION", StopReason.CONTENT_FILTER],
]);

/** The model wrote something that Gemini itself could not read, and threw away: there is no reply. Told as
 * the end of one, an agent would take its work for done. */
const failures: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "MALFORMED_RESPONSE",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MISSING_THOUGHT_SIGNATURE",
]);

/**
 * How the chunk says that the reply ends: by its candidate, or by the prompt's refusal.
 *
 * @returns `undefined`: it goes on
 */
export function readFinish(chunk: JsonRecord, candidate: JsonRecord): Finish | undefined {
  const word = textAt(candidate, "finishReason");
  if (word !== "" && word !== "FINISH_REASON_UNSPECIFIED") {
    const reason = reasons.get(word) ?? StopReason.UNSPECIFIED;
    const isFiltered = reason === StopReason.CONTENT_FILTER;
    return { reason, detail: isFiltered ? textAt(candidate, "finishMessage") || word : "" };
  }
  const feedback = recordAt(chunk, "promptFeedback") ?? {};
  const blocked = textAt(feedback, "blockReason");
  if (blocked === "" || blocked.endsWith("_REASON_UNSPECIFIED")) return undefined;
  const detail = textAt(feedback, "blockReasonMessage") || blocked;
  return { reason: StopReason.CONTENT_FILTER, detail };
}

/** The first candidate; empty where there is none, as in a chunk that only has usage. */
export function candidateOf(chunk: JsonRecord): JsonRecord {
  return recordsAt(chunk, "candidates")[0] ?? {};
}

/** The failure that a chunk tells; `undefined`: none. */
export function readFailure(chunk: JsonRecord, candidate: JsonRecord): ReplyError | undefined {
  const error = recordAt(chunk, "error");
  if (error !== undefined) return errorOf(error);
  const word = textAt(candidate, "finishReason");
  if (!failures.has(word)) return undefined;
  const message = textAt(candidate, "finishMessage");
  const told = `The model's reply was unusable (${word}${message && `: ${message}`}); try again`;
  return replyError(ErrorCode.UPSTREAM_ERROR, told);
}

function errorOf(error: JsonRecord): ReplyError {
  const message = textAt(error, "message") || "The model's vendor failed; try again";
  switch (countAt(error, "code")) {
    case 400:
      return replyError(ErrorCode.INVALID_REQUEST, message);
    case 401:
    case 402:
    case 403:
      // About the operator's account: none of the caller's business.
      return replyError(ErrorCode.SERVICE_UNAVAILABLE, "The model is out of service for a moment");
    case 429:
      return replyError(ErrorCode.RATE_LIMIT_EXCEEDED, message);
    case 503:
      return replyError(ErrorCode.UPSTREAM_OVERLOADED, message);
    case 504:
      return replyError(ErrorCode.UPSTREAM_TIMEOUT, message);
    case undefined:
    default:
      return replyError(ErrorCode.UPSTREAM_ERROR, message);
  }
}

function replyError(code: ErrorCode, message: string): ReplyError {
  return { $typeName: "uas.inference.v1.ReplyError", code, message };
}

/**
 * The usage so far: each chunk's counts hold for the whole reply. What tools of Gemini itself brought in is
 * input, and thoughts are output, which the candidates' count leaves out.
 */
export function readUsage(chunk: JsonRecord): Usage | undefined {
  const counts = recordAt(chunk, "usageMetadata");
  if (counts === undefined) return undefined;
  const prompt = protoCountAt(counts, "promptTokenCount") ?? 0;
  const reasoning = protoCountAt(counts, "thoughtsTokenCount") ?? 0;
  const inputTokens = prompt + (protoCountAt(counts, "toolUsePromptTokenCount") ?? 0);
  return {
    $typeName: "uas.type.v1.Usage",
    inputTokens,
    cachedInputTokens: Math.min(protoCountAt(counts, "cachedContentTokenCount") ?? 0, inputTokens),
    cacheWriteTokens: 0,
    outputTokens: (protoCountAt(counts, "candidatesTokenCount") ?? 0) + reasoning,
    reasoningTokens: reasoning,
  };
}
