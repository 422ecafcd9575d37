/** Reads errors: of refused requests, and failures that a reply or a stream chunk reports. */
import { ErrorCode } from "../../../gen/uas/error/v1/error_pb.ts";
import type { ReplyError } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { VendorError } from "../codec.ts";
import { countAt, isRecord, type JsonRecord, recordAt, textAt } from "../../wire/json/value.ts";

/**
 * The model wrote output that Gemini could not parse and discarded: there is no reply. If this were
 * reported as the end of one, an agent would consider its work done.
 */
const failures: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "MALFORMED_RESPONSE",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MISSING_THOUGHT_SIGNATURE",
]);

/** Reads the failure of a chunk; undefined if there is none. */
export function readFailure(chunk: JsonRecord, candidate: JsonRecord): ReplyError | undefined {
  const error = recordAt(chunk, "error");
  if (error !== undefined) return errorOf(error);
  const word = textAt(candidate, "finishReason");
  if (!failures.has(word)) return undefined;
  const message = textAt(candidate, "finishMessage");
  const text = `The model's reply was unusable (${word}${message && `: ${message}`}); try again`;
  return replyError(ErrorCode.UPSTREAM_ERROR, text);
}

function errorOf(error: JsonRecord): ReplyError {
  const message = textAt(error, "message") || "The model's vendor failed; try again";
  switch (countAt(error, "code")) {
    case 400:
      return replyError(ErrorCode.INVALID_REQUEST, message);
    case 401:
    case 402:
    case 403:
      // Concerns the operator's account, so the caller does not see it.
      return replyError(ErrorCode.SERVICE_UNAVAILABLE, "The model is temporarily out of service");
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

/** Implements {@link VendorCodec.decodeError}. A stream that is refused comes as a list of one. */
export function decodeGeminiError(body: Buffer): VendorError | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  const error = isRecord(first) ? recordAt(first, "error") : undefined;
  if (error === undefined) return undefined;
  return { message: textAt(error, "message"), code: textAt(error, "status") };
}
