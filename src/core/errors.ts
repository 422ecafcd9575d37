/**
 * The error catalogue. Every failure visible to a caller is a {@link GatewayError} with a code of
 * `uas.error.v1.ErrorCode`. The table below maps each code to every surface, exhaustively: a new
 * code does not compile until it has a row.
 */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema, RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { ErrorCode, ErrorCodeSchema, ErrorDetailSchema } from "../../gen/uas/error/v1/error_pb.ts";

export { ErrorCode };

/**
 * The party at fault. It decides the log level: client faults need no attention from the operator.
 */
export type ErrorSource = "client" | "upstream" | "gateway";

/** The properties of an error code on every surface. */
export interface ErrorMeaning {
  /** The documented code, in lower case: `error.code` of the JSON bodies. */
  readonly word: string;
  /** `error.type` of the chat-completions, responses and platform bodies. */
  readonly type: string;
  /** The HTTP status. */
  readonly status: number;
  /** The code that Connect and gRPC callers get. */
  readonly rpc: Code;
  /** The party at fault. */
  readonly source: ErrorSource;
}

/** Every error code but UNSPECIFIED. */
export type SentErrorCode = Exclude<
  (typeof ErrorCode)[keyof typeof ErrorCode],
  typeof ErrorCode.UNSPECIFIED
>;

const invalid = "invalid_request_error";

/** The catalogue. */
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
  [ErrorCode.IDEMPOTENCY_KEY_IN_USE]: {
    word: "idempotency_key_in_use",
    type: invalid,
    status: 409,
    rpc: Code.Aborted,
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
  [ErrorCode.CONFLICT]: {
    word: "conflict",
    type: invalid,
    status: 409,
    rpc: Code.Aborted,
    source: "client",
  },
};

/** Optional parts of a {@link GatewayError}. */
export interface GatewayErrorOptions {
  /**
   * The request member at fault, spelled as in the caller's dialect. Undefined if no single member
   * is at fault.
   */
  readonly param?: string;
  /**
   * Seconds until a retry makes sense, a whole number of at least 1. Default: 1 for statuses 429
   * and 503, otherwise absent.
   */
  readonly retryAfterSeconds?: number;
  /** Values that the message mentions. Never a secret. Empty by default. */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * Content of `error.details` in JSON bodies, for example the upstream's error code. Empty by
   * default.
   */
  readonly details?: Readonly<Record<string, string | string[]>>;
  /** Further headers of the HTTP reply. None by default. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The HTTP status, if it differs from the code's status. */
  readonly status?: number;
  /** Details for the operator's log; callers never see them. None by default. */
  readonly internal?: string;
  /** The underlying error; logged only. */
  readonly cause?: unknown;
}

/**
 * A failure with a documented code. `message` is shown to the caller; `internal` and `cause` are
 * logged.
 */
export class GatewayError extends Error {
  readonly code: SentErrorCode;
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly details: Readonly<Record<string, string | string[]>>;
  readonly headers: Readonly<Record<string, string>> | undefined;
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
    this.headers = options.headers;
    this.retryAfterSeconds =
      options.retryAfterSeconds ?? (status === 429 || status === 503 ? 1 : undefined);
    this.metadata = options.metadata ?? {};
    this.internal = options.internal;
  }

  /** The catalogue row of the code. */
  get meaning(): ErrorMeaning {
    return errorMeanings[this.code];
  }
}

/** The INTERNAL_ERROR for an unexpected failure. The cause is logged, not shown. */
export function internalError(cause: unknown): GatewayError {
  const text = "The gateway failed; report the request id to its operator";
  return new GatewayError(ErrorCode.INTERNAL_ERROR, text, { cause });
}

/** `domain` of the ErrorInfo of every error. */
const errorDomain = "uas";

/**
 * Converts the error for an RPC, with exactly one ErrorDetail. Its contents are repeated in
 * Google's ErrorInfo and RetryInfo, which gRPC libraries and proxies read without knowing the
 * contract.
 */
export function toRpcError(error: GatewayError): ConnectError {
  const { code, param = "", retryAfterSeconds, metadata, meaning } = error;
  const retry = retryAfterSeconds !== undefined && {
    retryDelay: durationFromMs(retryAfterSeconds * 1_000),
  };
  const info = {
    reason: reasonOf(code),
    domain: errorDomain,
    metadata: { ...metadata, ...(param !== "" && { param }) },
  };
  const details = [
    {
      desc: ErrorDetailSchema,
      value: create(ErrorDetailSchema, { code, param, metadata, ...retry }),
    },
    { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, info) },
    ...(retry ? [{ desc: RetryInfoSchema, value: create(RetryInfoSchema, retry) }] : []),
  ];
  return new ConnectError(error.message, meaning.rpc, undefined, details, error);
}

/** The name of a code without its prefix: `INSUFFICIENT_BALANCE`. */
function reasonOf(code: SentErrorCode): string {
  return ErrorCodeSchema.value[code]?.localName ?? "";
}

/** Codes for Connect's errors, which contain no ErrorDetail. */
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

/**
 * Reads the error of an RPC: the same object within this process, otherwise rebuilt from its
 * ErrorDetail.
 */
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
