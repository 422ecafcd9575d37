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

/** Turns every failure into a ConnectError with exactly one ErrorDetail; logs what nobody foresaw. */
export function createErrorMapping(log: Logger): Interceptor {
  return (next) => async (request) => {
    const convert = (error: unknown): ConnectError => {
      const known = toGatewayError(error);
      if (known.code === ErrorCode.INTERNAL_ERROR) {
        const id = request.contextValues.get(requestIdKey);
        log.error(
          { requestId: id, method: request.method.name, err: known.cause ?? known },
          "an RPC failed",
        );
      }
      return toRpcError(known);
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

/** An iterator around another costs a promise for each message; a generator would cost three. */
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

/** Reads any failure as a GatewayError: our own, Connect's, or a surprise. */
function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  return error instanceof ConnectError ? fromRpcError(error) : internalError(error);
}

/** The response with another stream of messages. Put in its place: each call has a response of its own, and a copy
 * would make headers that nobody asks for. */
export function withMessage(
  response: StreamResponse,
  message: StreamResponse["message"],
): StreamResponse {
  (response as { message: StreamResponse["message"] }).message = message;
  return response;
}
