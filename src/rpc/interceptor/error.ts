import { ConnectError, type Interceptor, type StreamResponse } from "@connectrpc/connect";
import type { Logger } from "pino";
import { requestIdKey } from "../../core/caller.ts";
import {
  ErrorCode,
  fromRpcError,
  GatewayError,
  internalError,
  toRpcError,
} from "../../core/errors.ts";

/** The RPC that failed. */
interface FailedRpc {
  readonly requestId: string;
  readonly method: string;
}

/** Converts any failure to a ConnectError with exactly one ErrorDetail, and logs unexpected ones. */
export function createErrorConversion(log: Logger) {
  return (error: unknown, { requestId, method }: FailedRpc): ConnectError => {
    const known = toGatewayError(error);
    if (known.code === ErrorCode.INTERNAL_ERROR) {
      log.error({ requestId, method, err: known.cause ?? known }, "an RPC failed");
    }
    return toRpcError(known);
  };
}

/** Converts every failure of an RPC. */
export function createErrorMapping(log: Logger): Interceptor {
  const convertFailure = createErrorConversion(log);
  return (next) => async (request) => {
    const convert = (error: unknown): ConnectError => {
      const requestId = request.contextValues.get(requestIdKey);
      return convertFailure(error, { requestId, method: request.method.name });
    };
    try {
      const response = await next(request);
      return response.stream
        ? withMessage(response, mapErrors(response.message, convert))
        : response;
    } catch (error) {
      throw convert(error);
    }
  };
}

/** A hand-written iterator costs one promise per message; a generator would cost three. */
function mapErrors<T>(
  source: AsyncIterable<T>,
  convert: (error: unknown) => ConnectError,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const inner = source[Symbol.asyncIterator]();
      const rethrow = (error: unknown): never => {
        throw convert(error);
      };
      return {
        next: () => inner.next().then(undefined, rethrow),
        return: () => inner.return?.().then(undefined, rethrow) ?? Promise.resolve(end),
      };
    },
  };
}

const end: IteratorResult<never> = { done: true, value: undefined };

/** Converts any failure to a GatewayError. */
function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  return error instanceof ConnectError ? fromRpcError(error) : internalError(error);
}

/**
 * Replaces the messages of a response in place: each call has its own response object, and a copy would create
 * headers that are never read.
 */
export function withMessage(
  response: StreamResponse,
  message: StreamResponse["message"],
): StreamResponse {
  (response as { message: StreamResponse["message"] }).message = message;
  return response;
}
