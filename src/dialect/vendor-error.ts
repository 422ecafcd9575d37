/**
 * Errors of vendors that are relayed to a client of the same style: their `type` and `code` are
 * strings, as every client expects (R-ERR-1, R-ERR-4), and nothing of the operator's account shows
 * (R-ERR-3).
 */
import { ErrorCode, GatewayError, type SentErrorCode } from "../core/errors.ts";
import { ObjectScan, openBrace } from "../wire/json/scan.ts";
import { Splicer } from "../wire/json/splice.ts";
import { isRecord, type JsonRecord, UnreadableReplyError } from "../wire/json/value.ts";

/** The strings that an error object must have, with the gateway's words for them. */
export type ErrorWords = Readonly<Partial<Record<"type" | "code", string>>>;

/** The gateway's words for a code, in the chat-completions and responses styles. */
export function errorWords(code: SentErrorCode): Required<ErrorWords> {
  const { word, type } = new GatewayError(code, "").meaning;
  return { type, code: word };
}

/**
 * Gives the error object at a path of members strings for `type` and `code`; every other byte
 * stays.
 *
 * @param path members that lead to the error object, such as `["error"]`; empty for the body itself
 * @param words replace members that are missing, null, empty or no string
 * @returns undefined if there is no object at the path
 */
export function withErrorWords(
  body: Buffer,
  path: readonly string[],
  words: ErrorWords,
): Buffer | undefined {
  const scan = new ObjectScan().scan(body, 0, body.length);
  for (const name of path) {
    const at = scan.find(name);
    if (at < 0 || body[scan.start(at)] !== openBrace) return undefined;
    scan.scan(body, scan.start(at), scan.end(at));
  }
  if (scan.size === 0) return undefined;
  const edits = Object.entries(words)
    .filter(([name]) => scan.stringBytes(name) === 0)
    .map(([name, word]) => ({ name, at: scan.find(name), value: JSON.stringify(word) }));
  const splicer = new Splicer();
  // In the order of the bytes; members that are missing come behind the last one.
  for (const { at, value } of edits
    .filter((each) => each.at >= 0)
    .toSorted((a, b) => a.at - b.at)) {
    splicer.replace(scan.start(at), scan.end(at), Buffer.from(value));
  }
  const missing = edits.filter(({ at }) => at < 0);
  if (missing.length > 0) {
    const end = scan.end(scan.size - 1);
    const text = missing.map(({ name, value }) => `,"${name}":${value}`).join("");
    splicer.replace(end, end, Buffer.from(text));
  }
  return splicer.apply(body, body.length);
}

/**
 * A vendor's refusal for a client of chat completions or responses: `{error:{message,type,code}}`,
 * all strings.
 *
 * @returns undefined if the body has another form
 */
export function relayOpenaiError(body: Buffer, { code }: GatewayError): Buffer | undefined {
  const scan = new ObjectScan().scan(body, 0, body.length);
  const at = scan.find("error");
  if (at < 0) return undefined;
  const error = new ObjectScan().scan(body, scan.start(at), scan.end(at));
  return error.stringBytes("message") === 0
    ? undefined
    : withErrorWords(body, ["error"], errorWords(code));
}

/** The facts of an error that say whose fault it is. */
export interface ErrorFacts {
  readonly code: string;
  readonly type: string;
  readonly message: string;
}

/** Codes and types by which vendors refuse the operator's credential or money. */
const operatorWords =
  /^(?:insufficient_(?:quota|balance|credits?|funds)|invalid_api_key|invalid_authentication(?:_error)?|incorrect_api_key|authentication_(?:error|failed)|unauthorized|permission_(?:error|denied)|forbidden|billing_(?:error|hard_limit_reached|not_active)|account_deactivated|access_terminated|quota_exceeded|payment_required|arrearage|401|402|403)$/i;

/** Messages of vendors whose code says nothing. */
const operatorMessages =
  /exceeded your current quota|incorrect api key|invalid api key|check your plan and billing|insufficient (?:quota|balance|credit)|out of credits|account .{0,40}(?:suspended|deactivated|overdue|in arrears)/i;

/** Whether an error concerns the operator's credential or balance, which customers must not see. */
export function isOperatorFault({ code, type, message }: ErrorFacts): boolean {
  return operatorWords.test(code) || operatorWords.test(type) || operatorMessages.test(message);
}

/** The facts of an error object, or of an event that is one. */
export function errorFacts(error: unknown): ErrorFacts {
  if (typeof error === "string") return { code: "", type: "", message: error };
  if (!isRecord(error)) return { code: "", type: "", message: "" };
  return {
    code: wordOf(error, "code"),
    type: wordOf(error, "type"),
    message: wordOf(error, "message"),
  };
}

function wordOf(record: JsonRecord, name: string): string {
  const value = record[name];
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : "";
}

/** The customer's error instead of one about the operator's account. */
export function outOfService(): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "The model is temporarily out of service; try again later or use another model",
  );
}

/** The gateway's error for one that a vendor reports in a stream in no form of its style. */
export function toStreamError(facts: ErrorFacts): GatewayError {
  const message = facts.message || "The model's vendor failed; try again";
  return new GatewayError(streamErrorCode(facts), message);
}

/** The error for a stream that ends before it begins. */
export function emptyStream(): GatewayError {
  return toStreamError({
    code: "",
    type: "",
    message: "The model's vendor sent no reply; try again",
  });
}

/** The gateway's code for an error that a vendor reports in a stream. */
export function streamErrorCode({ code, type }: ErrorFacts): SentErrorCode {
  const words = `${code} ${type}`;
  if (/rate.?limit|\b429\b|too_many_requests/i.test(words)) return ErrorCode.RATE_LIMIT_EXCEEDED;
  if (/overload|unavailable|slow_down|\b(?:503|529)\b/i.test(words)) {
    return ErrorCode.UPSTREAM_OVERLOADED;
  }
  if (/time.?out|\b(?:408|504)\b/i.test(words)) return ErrorCode.UPSTREAM_TIMEOUT;
  if (
    /^invalid_(?!api_key)|\binvalid_request|context_length|\b(?:400|413|415|422)\b/i.test(words)
  ) {
    return ErrorCode.INVALID_REQUEST;
  }
  return ErrorCode.UPSTREAM_ERROR;
}

/**
 * Refuses a whole reply that is an error, although its status says success, and an object that is
 * no reply.
 *
 * @param output the member with what the model generated
 * @throws UnreadableReplyError: another route may serve the call, and nothing is charged
 */
export function refuseErrorReply(scan: ObjectScan, output: "choices" | "content" | "output"): void {
  const isError = scan.is("object", "error") || scan.is("type", "error");
  const isEmpty = scan.elements(output).length === 0;
  if (!isError && !(hasError(scan) && isEmpty)) {
    // A chat completion has a choice, also if its model said nothing.
    if (scan.kind(output) === openBracket && !(output === "choices" && isEmpty)) return;
    throw new UnreadableReplyError(`the vendor's reply has no ${output}`);
  }
  const { message } = errorFacts(scan.value("error") ?? scan.value("message"));
  throw new UnreadableReplyError(`an error with a status of success: ${message}`);
}

const openBracket = 0x5b;

/** Whether an object has a member `error` that is neither null, false nor empty. */
export function hasError(scan: ObjectScan): boolean {
  const error = scan.value("error");
  if (isRecord(error)) return Object.keys(error).length > 0;
  return Array.isArray(error) ? error.length > 0 : Boolean(error);
}
