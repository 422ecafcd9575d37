/**
 * Detects a server that keeps connections open without answering, for example a frozen one, so that
 * callers get 503 within a second (R-MON-7). TCP keep-alive detects only unreachable machines, and
 * only after seconds.
 *
 * While a connection is in use and no connection has received an answer, a second connection sends
 * a query. If that gets no answer either, the connections in use are closed, and their statements
 * fail.
 */
import { DatabaseError, type Pool, type PoolClient } from "pg";
import type { DatabaseClient } from "./client.ts";

/** Options of {@link watchForSilence}. */
export interface SilenceOptions {
  /**
   * Requests an answer from the server.
   *
   * @throws if there is none in time
   */
  readonly ask: () => Promise<void>;
  /** Called with the error that the statements get. */
  readonly onSilent?: ((error: Error) => void) | undefined;
}

/** Interval of the checks. */
const checkMs = 100;

/** Time without an answer after which the server is probed. */
const quietMs = 250;

/** Watches the server of a pool. Call it before the pool is used. */
export function watchForSilence(pool: Pool, { ask, onSilent }: SilenceOptions): void {
  /** The connections in use, and since when; the oldest first. */
  const used = new Map<PoolClient, number>();
  let answeredMs = 0;
  let isAsking = false;
  let timer: NodeJS.Timeout | undefined;

  const check = async (): Promise<void> => {
    const [oldestMs] = used.values();
    if (oldestMs === undefined) {
      clearInterval(timer);
      timer = undefined;
      return;
    }
    const askedMs = performance.now();
    if (isAsking || askedMs - Math.max(oldestMs, answeredMs) < quietMs) return;
    isAsking = true;
    try {
      await ask();
      answeredMs = performance.now();
    } catch (cause) {
      // A refusal is an answer: the server may have too many connections.
      if (cause instanceof DatabaseError) answeredMs = performance.now();
      // The server may have answered another statement meanwhile.
      if (answeredMs < askedMs) closeUsed(askedMs, cause);
    } finally {
      isAsking = false;
    }
  };
  const closeUsed = (untilMs: number, cause: unknown): void => {
    const error = new Error("timeout: the database does not answer", { cause });
    for (const [client, sinceMs] of used) {
      // `end` would wait for pipelined statements.
      if (sinceMs <= untilMs)
        (client as unknown as DatabaseClient).connection.stream.destroy(error);
    }
    onSilent?.(error);
  };
  pool.on("acquire", (client) => {
    used.set(client, performance.now());
    timer ??= setInterval(() => void check(), checkMs).unref();
  });
  pool.on("release", (error: Error | undefined, client) => {
    used.delete(client);
    if (!error) answeredMs = performance.now();
  });
}
