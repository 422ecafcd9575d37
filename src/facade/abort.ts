/** Ends RPCs whose callers have left, or which outlive the gateway. */
import type { ServerResponse } from "node:http";

/** Aborts the running requests of a listener when the gateway must stop. One listener for all: adding
 * one to the signal for each request and taking it off again costs a microsecond. */
export function stopAll(stopping: AbortSignal): Set<AbortController> {
  const running = new Set<AbortController>();
  stopping.addEventListener("abort", () => {
    for (const abort of running) abort.abort(stopping.reason);
  });
  return running;
}

/** Aborted when the client leaves before the end. */
export function abortWith(
  response: ServerResponse,
  running: Set<AbortController>,
): AbortController {
  const abort = new AbortController();
  running.add(abort);
  response.on("close", () => {
    running.delete(abort);
    if (!response.writableFinished) abort.abort();
  });
  return abort;
}
