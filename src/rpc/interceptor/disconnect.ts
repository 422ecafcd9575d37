import type { Interceptor } from "@connectrpc/connect";
import { GatewayStopping } from "../../core/caller.ts";
import { withMessage } from "./error.ts";

/** Time for readers to receive the reason while the gateway stops, in milliseconds. */
const hearMs = 1_000;

/**
 * Ends a stream whose reader has disconnected. Connect's Node.js adapter would not: it waits forever for the closed
 * connection to drain, and the call behind the stream would never be settled.
 */
export const readerGone: Interceptor = (next) => async (request) => {
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
