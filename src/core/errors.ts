/**
 * The error catalogue. Every failure that a caller can see is a {@link GatewayError} with one of the
 * codes of `uas.error.v1.ErrorCode`; the table below decides, exhaustively, what each code means on
 * every surface. A new code does not compile until its row exists.
 */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorCode, ErrorDetailSchema } from "../../gen/uas/error/v1/error_pb.ts";

export { ErrorCode };

/** Who is at fault; decides the log level: the client's faults are no news to the operator. */
export type ErrorSource = "client" | "upstream" | "gateway";

/** What an error code means on every surface. */
export interface ErrorMeaning {
  /** The documented code, in lower case: `error.code` of the JSON bodies. */
  readonly word: string;
  /** `error.type` of the chat-completions, responses and platform bodies. */
  readonly type: string;
  /** The HTTP status. */
  readonly status: number;
  /** The code that Connect and gRPC callers get. */
  readonly rpc: Code;
  /** Who is at fault. */
  readonly source: ErrorSource;
}

/** An error code that can be sent: all but UNSPECIFIED. */
export type SentErrorCode = Exclude<
  (typeof ErrorCode)[keyof typeof ErrorCode],
  typeof ErrorCode.UNSPECIFIED
>;

const invalid = "invalid_request_error";

/** The one table. */
export const errorMeanings: Readonly<Record<SentErrorCode, ErrorMeaning>> = {
  [ErrorCode.INVALID_REQUEST]: {
    word: "invalid_request",
    type: invalid,
    status: 400,
    rpc: Code.InvalidArgument,
    source: "client",
  },
  [ErrorCode.UNAUTHENTICATED]: {
    word: "invalid_request",
    type: invalid,
    status: 401,
    rpc: Code.Unauthenticated,
    source: "client",
  },
  [ErrorCode.INSUFFICIENT_BALANCE]: {
    word: "insufficient_balance",
    type: "insufficient_balance",
    status: 402,
    rpc: Code.FailedPrecondition,
    source: "client",
  },
  [ErrorCode.ACCESS_DENIED]: {
    word: "access_denied",
    type: "access_denied",
    status: 403,
    rpc: Code.PermissionDenied,
    source: "client",
  },
  [ErrorCode.MODEL_NOT_FOUND]: {
    word: "model_not_found",
    type: invalid,
    status: 404,
    rpc: Code.NotFound,
    source: "client",
  },
  [ErrorCode.TASK_NOT_FOUND]: {
    word: "task_not_found",
    type: invalid,
    status: 404,
    rpc: Code.NotFound,
    source: "client",
  },
  [ErrorCode.NOT_FOUND]: {
    word: "not_found",
    type: invalid,
    status: 404,
    rpc: Code.NotFound,
    source: "client",
  },
  [ErrorCode.METHOD_NOT_ALLOWED]: {
    word: "method_not_allowed",
    type: invalid,
    status: 405,
    rpc: Code.Unimplemented,
    source: "client",
  },
  [ErrorCode.TASK_NOT_CANCELLABLE]: {
    word: "task_not_cancellable",
    type: invalid,
    status: 409,
    rpc: Code.FailedPrecondition,
    source: "client",
  },
  [ErrorCode.REQUEST_TOO_LARGE]: {
    word: "request_too_large",
    type: invalid,
    status: 413,
    rpc: Code.ResourceExhausted,
    source: "client",
  },
  [ErrorCode.UNSUPPORTED_MEDIA_TYPE]: {
    word: "unsupported_media_type",
    type: invalid,
    status: 415,
    rpc: Code.InvalidArgument,
    source: "client",
  },
  [ErrorCode.IDEMPOTENCY_KEY_REUSED]: {
    word: "idempotency_key_reused",
    type: invalid,
    status: 422,
    rpc: Code.AlreadyExists,
    source: "client",
  },
  [ErrorCode.RATE_LIMIT_EXCEEDED]: {
    word: "rate_limit_exceeded",
    type: "rate_limit_error",
    status: 429,
    rpc: Code.ResourceExhausted,
    source: "upstream",
  },
  [ErrorCode.QUEUE_FULL]: {
    word: "queue_full",
    type: "rate_limit_error",
    status: 429,
    rpc: Code.ResourceExhausted,
    source: "client",
  },
  [ErrorCode.INTERNAL_ERROR]: {
    word: "internal_error",
    type: "api_error",
    status: 500,
    rpc: Code.Internal,
    source: "gateway",
  },
  [ErrorCode.UPSTREAM_ERROR]: {
    word: "upstream_error",
    type: "api_error",
    status: 502,
    rpc: Code.Unavailable,
    source: "upstream",
  },
  [ErrorCode.SERVICE_UNAVAILABLE]: {
    word: "service_unavailable",
    type: "api_error",
    status: 503,
    rpc: Code.Unavailable,
    source: "gateway",
  },
  [ErrorCode.UPSTREAM_OVERLOADED]: {
    word: "upstream_overloaded",
    type: "api_error",
    status: 503,
    rpc: Code.Unavailable,
    source: "upstream",
  },
  [ErrorCode.UPSTREAM_TIMEOUT]: {
    word: "upstream_timeout",
    type: "api_error",
    status: 504,
    rpc: Code.DeadlineExceeded,
    source: "upstream",
  },
  [ErrorCode.CONTENT_REJECTED]: {
    word: "content_rejected",
    type: invalid,
    status: 400,
    rpc: Code.InvalidArgument,
    source: "client",
  },
  [ErrorCode.INVALID_PARAMETERS]: {
    word: "invalid_parameters",
    type: invalid,
    status: 400,
    rpc: Code.InvalidArgument,
    source: "client",
  },
  [ErrorCode.UPSTREAM_SUBMIT_UNKNOWN]: {
    word: "upstream_submit_unknown",
    type: "api_error",
    status: 500,
    rpc: Code.Unknown,
    source: "upstream",
  },
  [ErrorCode.TASK_TIMEOUT]: {
    word: "task_timeout",
    type: "api_error",
    status: 504,
    rpc: Code.DeadlineExceeded,
    source: "upstream",
  },
  [ErrorCode.RESULT_UNAVAILABLE]: {
    word: "result_unavailable",
    type: "api_error",
    status: 502,
    rpc: Code.Unavailable,
    source: "upstream",
  },
};

/** What beside the message a {@link GatewayError} can carry. */
export interface GatewayErrorOptions {
  /** The request member at fault, in the words of the caller's dialect. Default: none. */
  readonly param?: string;
  /** When a retry makes sense, in whole seconds ≥ 1. Default: 1 for statuses 429 and 503, else none. */
  readonly retryAfterSeconds?: number;
  /** The values that the message mentions. Never a secret. Default: none. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** What `error.details` of the JSON bodies tells beside the message, for example the vendor's own code.
   * Default: nothing. */
  readonly details?: Readonly<Record<string, string | string[]>>;
  /** The HTTP status, where it is another than the code's. Default: the code's. */
  readonly status?: number;
  /** What the operator's log needs beside the message; callers never see it. Default: none. */
  readonly internal?: string;
  /** What led here; goes to the log only. */
  readonly cause?: unknown;
}

/** A failure with a documented code. `message` is for the caller; `internal` and `cause` for the log. */
export class GatewayError extends Error {
  readonly code: SentErrorCode;
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly details: Readonly<Record<string, string | string[]>>;
  readonly status: number;
  readonly internal: string | undefined;

  constructor(code: SentErrorCode, message: string, options: GatewayErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "GatewayError";
    this.code = code;
    this.param = options.param;
    const { status } = errorMeanings[code];
    this.status = options.status ?? status;
    this.details = options.details ?? {};
    this.retryAfterSeconds =
      options.retryAfterSeconds ?? (status === 429 || status === 503 ? 1 : undefined);
    this.metadata = options.metadata ?? {};
    this.internal = options.internal;
  }

  /** What the code means. */
  get meaning(): ErrorMeaning {
    return errorMeanings[this.code];
  }
}

/** What is said of a failure that nobody foresaw; what it was goes to the log. */
export function internalError(cause: unknown): GatewayError {
  const text = "The gateway failed; tell its operator the request id";
  return new GatewayError(ErrorCode.INTERNAL_ERROR, text, { cause });
}

/** The error as an RPC carries it: with exactly one ErrorDetail. */
export function toRpcError(error: GatewayError): ConnectError {
  const { code, param = "", retryAfterSeconds, metadata, meaning } = error;
  const value = create(ErrorDetailSchema, { code, param, metadata });
  if (retryAfterSeconds !== undefined) value.retryDelay = durationFromMs(retryAfterSeconds * 1_000);
  const detail = { desc: ErrorDetailSchema, value };
  return new ConnectError(error.message, meaning.rpc, undefined, [detail], error);
}

/** What Connect's own errors mean, which carry no detail. */
const plainCodes: ReadonlyMap<Code, SentErrorCode> = new Map([
  [Code.InvalidArgument, ErrorCode.INVALID_REQUEST],
  [Code.Unimplemented, ErrorCode.INVALID_REQUEST],
  [Code.ResourceExhausted, ErrorCode.REQUEST_TOO_LARGE],
  [Code.Unauthenticated, ErrorCode.UNAUTHENTICATED],
  [Code.Unavailable, ErrorCode.SERVICE_UNAVAILABLE],
  [Code.DeadlineExceeded, ErrorCode.UPSTREAM_TIMEOUT],
  [Code.Canceled, ErrorCode.SERVICE_UNAVAILABLE],
  [Code.Aborted, ErrorCode.SERVICE_UNAVAILABLE],
]);

/** The error that an RPC carried: in this process the very one, from another what its detail tells. */
export function fromRpcError(error: ConnectError): GatewayError {
  if (error.cause instanceof GatewayError) return error.cause;
  const [detail] = error.findDetails(ErrorDetailSchema);
  if (detail === undefined || !(detail.code in errorMeanings)) {
    const code = plainCodes.get(error.code);
    return code === undefined
      ? internalError(error)
      : new GatewayError(code, error.rawMessage, { cause: error });
  }
  const { param, retryDelay, metadata } = detail;
  return new GatewayError(detail.code as SentErrorCode, error.rawMessage, {
    ...(param && { param }),
    ...(retryDelay && { retryAfterSeconds: durationMs(retryDelay) / 1_000 }),
    metadata,
  });
}
