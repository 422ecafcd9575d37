/** Converts vendors' refusals to the customer's errors, by status (R-ERR-3, R-ERR-4). */
import { refusalBytesMax } from "../core/limits.ts";
import { ErrorCode, GatewayError, type SentErrorCode } from "../core/errors.ts";
import type { FailureKind } from "../http/failure.ts";
import type { VendorReply } from "../provider/reply.ts";
import type { Vendor } from "../provider/vendor.ts";
import type { AttemptFailure } from "./breaker.ts";

/** The handling of a refusal. */
export interface Refusal {
  /**
   * Whether the customer gets the vendor's own answer, because it concerns the customer's request.
   */
  readonly isRelayed: boolean;
  /** The customer's error otherwise. */
  readonly error: GatewayError;
  /** Whether another route may serve the call. */
  readonly canRetry: boolean;
  /** The cause that needs the operator's action; undefined if there is none. */
  readonly alarm: "credential" | "money" | "model" | undefined;
}

/** Classifies a refusal for routing. */
export function attemptFailureOf(
  status: number,
  { alarm }: Pick<Refusal, "alarm">,
): AttemptFailure {
  if (alarm === "credential" || alarm === "money") return "credential";
  if (alarm === "model") return "model";
  return status === 429 ? "rate_limit" : "server";
}

/** Classifies a failure without a reply for routing. */
export function attemptFailureOfKind(kind: FailureKind): AttemptFailure {
  if (kind === "connect" || kind === "connect_timeout") return "connect";
  return kind === "timeout" ? "silence" : "server";
}

/** Whether a vendor refused a request because it is longer than the model's context. */
export function isContextRefusal({ body }: { readonly body: Buffer }): boolean {
  const text = body.toString("latin1", 0, 4_096);
  return /context_length_exceeded|maximum context length|prompt is too long|context window|input token count.{0,40}exceeds/i.test(
    text,
  );
}

/** A refusal as received. */
export interface RefusedReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The first part of its body. */
  readonly body: Buffer;
  /** The cause that only the vendor's body names, not its status; undefined if there is none. */
  readonly fault: Refusal["alarm"];
  /** The pause before a retry that the vendor requests, in seconds; undefined if there is none. */
  readonly retryAfter: number | undefined;
}

/**
 * The statuses by which vendors refuse the request itself. 415 is about images and files, or a
 * native client's own content type.
 */
const requestStatuses: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** Classifies a reply with a status outside 200–299. */
export function readRefusal(reply: RefusedReply): Refusal {
  const { status, fault, retryAfter } = reply;
  if (fault === "credential" || fault === "money") return outOfService(fault);
  if (fault === "model") return missingModel();
  if (status === 401 || status === 403) return outOfService("credential");
  if (status === 402 || (status === 429 && isQuotaExhausted(reply.body)))
    return outOfService("money");
  if (status === 404) return missingModel();
  if (requestStatuses.has(status)) return relayed(reply);
  if (status === 429) {
    const text =
      "The model's vendor asks to slow down; retry after the time in the retry-after header";
    return refusal(ErrorCode.RATE_LIMIT_EXCEEDED, text, retryAfter ?? 1);
  }
  if (status === 503 || status === 529) {
    const text =
      "The model's vendor has no capacity now; retry after the time in the retry-after header";
    return refusal(ErrorCode.UPSTREAM_OVERLOADED, text, retryAfter ?? 1);
  }
  if (status === 504) {
    return refusal(
      ErrorCode.UPSTREAM_TIMEOUT,
      "The model's vendor did not answer in time; try again",
    );
  }
  return refusal(ErrorCode.UPSTREAM_ERROR, "The model's vendor failed; try again");
}

/** The customer's error if no reply came. */
export function failureError(kind: FailureKind, cause: unknown): GatewayError {
  const isTimeout = kind === "timeout" || kind === "connect_timeout";
  return isTimeout
    ? new GatewayError(
        ErrorCode.UPSTREAM_TIMEOUT,
        "The model's vendor did not answer in time; try again",
        { cause },
      )
    : new GatewayError(
        ErrorCode.UPSTREAM_ERROR,
        "The connection to the model's vendor failed; try again",
        { cause },
      );
}

function refusal(code: SentErrorCode, message: string, retryAfter?: number): Refusal {
  const options = retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter };
  return {
    isRelayed: false,
    error: new GatewayError(code, message, options),
    canRetry: true,
    alarm: undefined,
  };
}

function missingModel(): Refusal {
  const text = "The model is not available at its vendor now; try another model or try later";
  return { ...refusal(ErrorCode.UPSTREAM_ERROR, text), alarm: "model" };
}

/**
 * The vendor refused the gateway's credential or balance: reported as 503, never as the customer's
 * 401 or 402.
 */
function outOfService(alarm: "credential" | "money"): Refusal {
  const text =
    "The model is temporarily out of service. Try again later; if it lasts, report the request id to the operator";
  return {
    isRelayed: false,
    error: new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, text, { retryAfterSeconds: 30 }),
    canRetry: true,
    alarm,
  };
}

const requestCodes: Readonly<Record<number, SentErrorCode>> = {
  413: ErrorCode.REQUEST_TOO_LARGE,
  415: ErrorCode.UNSUPPORTED_MEDIA_TYPE,
};

function relayed({ status, headers, body }: RefusedReply): Refusal {
  return {
    // A proxy before the vendor may answer in HTML, which is not an answer in any dialect.
    isRelayed: (headers["content-type"] ?? "").includes("json") && body.length > 0,
    error: new GatewayError(
      requestCodes[status] ?? ErrorCode.INVALID_REQUEST,
      "The model's vendor refused the request as invalid",
    ),
    canRetry: false,
    alarm: undefined,
  };
}

/** The vendor has as many calls in flight as it may have. */
export function overloaded(): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_OVERLOADED,
    "The model is at its limit of concurrent calls; retry after the time in the retry-after header",
  );
}

/** The operator's limits of the credential are used up, and no other may be used. */
export function limited(retryMs: number): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_OVERLOADED,
    "The model is at its limit of calls per minute or at once; retry after the time in the retry-after header",
    { retryAfterSeconds: Math.max(1, Math.ceil(retryMs / 1_000)) },
  );
}

/** No vendor of the model speaks a style for the call. */
export function unserved(): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_ERROR,
    "The model does not support this API style; use another model",
    { internal: "no vendor of the model's routes speaks it" },
  );
}

/** All routes are paused by their circuit breakers. */
export function paused(pausedMs: number): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    "All vendors of the model are failing; retry after the time in the retry-after header",
    { retryAfterSeconds: Math.max(1, Math.ceil(pausedMs / 1_000)) },
  );
}

/**
 * Whether the vendor account is empty. OpenAI answers 429 for the rate limit too; only the code
 * differs.
 */
function isQuotaExhausted(body: Buffer): boolean {
  return body.includes('"insufficient_quota"') || body.includes('"billing_hard_limit_reached"');
}

/** `retry-after-ms` or `retry-after` (seconds or a date) as whole seconds from 1 to one day. */
export function retryAfterSeconds(headers: Readonly<Record<string, string>>): number | undefined {
  const ms = retryAfterMs(headers);
  return ms === undefined ? undefined : Math.min(Math.max(Math.ceil(ms / 1_000), 1), 86_400);
}

/** Like {@link retryAfterSeconds}, in milliseconds of at least 0. */
export function retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
  const text = headers["retry-after"] ?? "";
  const ms = readNumber(headers["retry-after-ms"]) ?? (readNumber(text) ?? untilDate(text)) * 1_000;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function readNumber(text = ""): number | undefined {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/**
 * Seconds until an HTTP date. `Date.parse` reads `-5` as a month, so the text must begin with a day
 * of the week.
 */
function untilDate(text: string): number {
  return /^[A-Z][a-z]+, /.test(text) ? (Date.parse(text) - Date.now()) / 1000 : Number.NaN;
}

/** Reads the body of a refusal and classifies it. */
export async function readRefused(
  reply: VendorReply,
  vendor: Vendor,
): Promise<{ refusal: Refusal; body: Buffer }> {
  const { status, headers } = reply;
  const body = await reply.body.whole(refusalBytesMax);
  const fault = vendor.faultOf?.(status, body);
  const retryAfter = retryAfterSeconds(headers) ?? vendor.retryAfterOf?.(body);
  return { refusal: readRefusal({ status, headers, body, fault, retryAfter }), body };
}

/** The vendor's reply cannot be passed on. @param internal what is wrong with it, for the log */
export function unusableReply(internal: string): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_ERROR,
    "The model's vendor sent an invalid reply; try again",
    { internal },
  );
}
