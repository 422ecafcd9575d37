import { Code, ConnectError, type Interceptor, type StreamResponse } from "@connectrpc/connect";
import type { Logger } from "pino";
import {
  anonymous,
  callerKey,
  GatewayStopping,
  requestIdKey,
  resolveRequestId,
} from "../../core/caller.ts";
import { runInAccountContext } from "../../core/current-account.ts";
import { type Clock, clockKey } from "../../core/clock.ts";
import {
  ErrorCode,
  fromRpcError,
  GatewayError,
  internalError,
  toRpcError,
} from "../../core/errors.ts";
import type { CheckAccess } from "./access.ts";

/** The RPC that failed. */
interface FailedRpc {
  readonly requestId: string;
  readonly method: string;
}

/**
 * Converts any failure to a ConnectError with exactly one ErrorDetail, and logs unexpected ones.
 */
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
  if (!(error instanceof ConnectError)) return internalError(error);
  if (error.code !== Code.Internal || !isUnreadable(error.rawMessage)) return fromRpcError(error);
  return new GatewayError(ErrorCode.INVALID_REQUEST, error.rawMessage, { cause: error });
}

/**
 * Whether the library reports, as internal, a message that it cannot read: one that is not of its
 * type, that ends within its compression, or whose envelope contradicts the headers. Only the
 * client can cause that (R-ERR-7).
 */
export function isUnreadable(message: string): boolean {
  return /^(?:parse binary: |received (?:compressed|parsed) |protocol error: |decompression failed$)/.test(
    message,
  );
}

/**
 * Replaces the messages of a response in place: each call has a separate response object, and a
 * copy would create headers that are never read.
 */
export function withMessage(
  response: StreamResponse,
  message: StreamResponse["message"],
): StreamResponse {
  (response as { message: StreamResponse["message"] }).message = message;
  return response;
}

/**
 * Checks the access of the caller that the edge has identified, and runs the RPC in the context of
 * its account. A caller that no edge has identified is anonymous.
 */
export function createAccess(checkAccess: CheckAccess): Interceptor {
  return (next) => (request) => {
    const caller = request.contextValues.get(callerKey) ?? anonymous;
    checkAccess(request.method, caller);
    return runInAccountContext(caller, () => next(request));
  };
}

/** Time that readers have to receive the reason while the gateway stops. */
const hearMs = 1_000;

/**
 * Ends a stream whose reader has disconnected. Connect's Node.js adapter would not: it waits
 * without end for the closed connection to drain, and the call behind the stream would never be
 * settled.
 */
export const cancelOnDisconnect: Interceptor = (next) => async (request) => {
  const response = await next(request);
  if (!response.stream) return response;
  return withMessage(response, endWith(request.signal, response.message));
};

function endWith<T>(signal: AbortSignal, source: AsyncIterable<T>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const inner = source[Symbol.asyncIterator]();
      let timer: NodeJS.Timeout | undefined;
      // If a read is pending, its source returns after it.
      const leave = (): void => void inner.return?.().then(undefined, () => {});
      const onAbort = (): void => {
        if (signal.reason instanceof GatewayStopping) timer = setTimeout(leave, hearMs);
        else leave();
      };
      const forget = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
      };
      if (signal.aborted) onAbort();
      else signal.addEventListener("abort", onAbort);
      return {
        async next() {
          try {
            const result = await inner.next();
            if (result.done) forget();
            return result;
          } catch (error) {
            forget();
            throw error;
          }
        },
        async return() {
          forget();
          return (await inner.return?.()) ?? { done: true, value: undefined };
        },
      };
    },
  };
}

/** Gives every RPC the clock that dates its records. */
export function createClocked(clock: Clock): Interceptor {
  return (next) => (request) => {
    request.contextValues.set(clockKey, clock);
    return next(request);
  };
}

/** Assigns a request id to every RPC, the caller's id if it is valid, and echoes it. */
export const requestId: Interceptor = (next) => async (request) => {
  const { contextValues, header } = request;
  let id = contextValues.get(requestIdKey);
  if (id !== "") return next(request);
  id = resolveRequestId(header.get("x-request-id"), header.get("request-id"));
  contextValues.set(requestIdKey, id);
  try {
    const response = await next(request);
    // A service may have found another id in the message.
    response.header.set("x-request-id", contextValues.get(requestIdKey));
    return response;
  } catch (error) {
    if (error instanceof ConnectError) error.metadata.set("x-request-id", id);
    throw error;
  }
};
