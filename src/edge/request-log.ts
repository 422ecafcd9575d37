/**
 * Logs requests without a call record. Failed ones are bounded: during an outage, or while a client
 * ignores a refusal, thousands a second would fill the disk with the same line.
 */
import type { Logger } from "pino";
import { refusalKindsMax, refusalRecordsMax, refusalWindowMs } from "../core/limits.ts";
import { type Left, Repeats } from "../core/repeats.ts";

/** A request that has ended. */
export interface EndedRequest {
  readonly requestId: string;
  /** The path of the contract: from a closed set. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
  /** The documented word; empty on success. */
  readonly errorCode: string;
  readonly durationMs?: number;
}

/** Writes the log lines of requests. */
export class RequestLog {
  readonly #log: Logger;
  readonly #refused: Repeats<EndedRequest>;
  readonly #failed: Repeats<object>;

  constructor(log: Logger) {
    this.#log = log;
    const limits = { max: refusalRecordsMax, windowMs: refusalWindowMs, kindsMax: refusalKindsMax };
    this.#refused = new Repeats({
      ...limits,
      onEnd: ({ count, first }: Left<EndedRequest>) =>
        log.info({ ...first, count }, "further requests ended like this"),
    });
    this.#failed = new Repeats({
      ...limits,
      onEnd: ({ count, first }: Left<object>) =>
        log.error({ ...first, count }, "further requests failed like this"),
    });
  }

  /** Logs the end of a request. Of each route, status and error, the first ones have a line. */
  ended(request: EndedRequest): void {
    const { route, status, errorCode } = request;
    const isRefused = status >= 400;
    if (isRefused && !this.#refused.passes(`${route} ${status} ${errorCode}`, () => request))
      return;
    this.#log.info(request, "request");
  }

  /** Logs an unexpected failure. Of each cause, the first of a minute have a line. */
  failed(requestId: string | undefined, error: Error): void {
    const fields = { requestId, err: error.cause ?? error };
    if (this.#failed.passes(causeOf(fields.err), () => fields)) {
      this.#log.error(fields, "a request failed");
    }
  }

  /** Logs what is counted. */
  async stop(): Promise<void> {
    this.#refused.end();
    this.#failed.end();
  }
}

/** A short name of a cause, without what differs from request to request. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const code = "code" in error ? String(error.code) : "";
  return `${error.name} ${code} ${code === "" ? error.message.slice(0, 80) : ""}`;
}
