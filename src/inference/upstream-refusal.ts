/** What a vendor's refusal means for the customer: one table by status, R-ERR-3 and R-ERR-4. */
import { ErrorCode, GatewayError, type SentErrorCode } from "../core/errors.ts";
import type { FailureKind } from "../http/failure.ts";

/** What to do with a refusal. */
export interface Refusal {
  /** Whether the customer gets the vendor's own answer: it is about the customer's request. */
  readonly isRelayed: boolean;
  /** What the customer gets otherwise. */
  readonly error: GatewayError;
  /** Whether another route may serve the call. */
  readonly canRetry: boolean;
  /** What the operator must act on; `undefined`: nothing. */
  readonly alarm: "credential" | "money" | "model" | undefined;
}

/** What a refusal consists of. */
export interface RefusedReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The first part of its body. */
  readonly body: Buffer;
  /** What the vendor's own words say that its status does not. `undefined`: nothing. */
  readonly fault: Refusal["alarm"];
  /** After how many seconds the vendor asks to try again. `undefined`: it does not say. */
  readonly retryAfter: number | undefined;
}

/** Reads a reply with a status outside 200–299. */
export function readRefusal(reply: RefusedReply): Refusal {
  const { status, fault, retryAfter } = reply;
  if (fault === "credential" || fault === "money") return outOfService(fault);
  if (fault === "model") return missingModel();
  if (status === 401 || status === 403) return outOfService("credential");
  if (status === 402 || (status === 429 && isQuotaExhausted(reply.body)))
    return outOfService("money");
  if (status === 404) return missingModel();
  if (status === 400 || status === 413 || status === 422) return relayed(reply);
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

/** What the customer gets where no reply came. */
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

/** The vendor refused our credential or our account's money: none of the customer's business. */
function outOfService(alarm: "credential" | "money"): Refusal {
  const text =
    "The model is out of service for a moment; the operator has been told, try again later";
  return {
    isRelayed: false,
    error: new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, text, { retryAfterSeconds: 30 }),
    canRetry: true,
    alarm,
  };
}

function relayed({ status, headers, body }: RefusedReply): Refusal {
  const code = status === 413 ? ErrorCode.REQUEST_TOO_LARGE : ErrorCode.INVALID_REQUEST;
  return {
    // Something between us and the vendor may answer in HTML; that is no answer in any dialect.
    isRelayed: (headers["content-type"] ?? "").includes("json") && body.length > 0,
    error: new GatewayError(code, "The model's vendor refused the request as invalid"),
    canRetry: false,
    alarm: undefined,
  };
}

/** OpenAI answers 429 both for speed and for an empty account; only the code tells them apart. */
function isQuotaExhausted(body: Buffer): boolean {
  return body.includes('"insufficient_quota"') || body.includes('"billing_hard_limit_reached"');
}

/** `retry-after-ms` or `retry-after` (seconds or a date) as whole seconds from 1 to one day. */
export function retryAfterSeconds(headers: Readonly<Record<string, string>>): number | undefined {
  const ms = readNumber(headers["retry-after-ms"]);
  const text = headers["retry-after"] ?? "";
  const seconds = ms === undefined ? (readNumber(text) ?? untilDate(text)) : ms / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(Math.ceil(seconds), 1), 86_400) : undefined;
}

function readNumber(text = ""): number | undefined {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** `Date.parse` takes `-5` for a month: only what names a day of the week is a date of HTTP. */
function untilDate(text: string): number {
  return /^[A-Z][a-z]+, /.test(text) ? (Date.parse(text) - Date.now()) / 1000 : Number.NaN;
}
