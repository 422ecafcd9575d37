import type { CancelSignal } from "./cancel-signal.ts";
import { databaseUnavailable } from "./database-lost.ts";

/** A job that never runs twice at once. */
interface SingleFlight {
  /** Runs the job unless it is running already. Resolves when that run has ended. Never rejects. */
  (): Promise<void>;
  /** Resolves when the current run, if any, has ended. */
  ended(): Promise<void>;
}

/** Makes a job run one at a time. @param failed told of each failure */
export function singleFlight(
  job: () => Promise<unknown>,
  failed: (error: unknown) => void,
): SingleFlight {
  let running: Promise<void> | undefined;
  const runOnce = async (): Promise<void> => {
    try {
      await job();
    } catch (error) {
      failed(error);
    } finally {
      running = undefined;
    }
  };
  return Object.assign(() => (running ??= runOnce()), { ended: async () => running });
}

/**
 * Resolves as `work` does, but rejects after `waitMs` milliseconds: a database that hangs must not hold a call
 * forever.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE after the timeout; whatever `work` throws
 */
export async function withTimeout<T>(waitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(databaseUnavailable()), waitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves after `ms` milliseconds, or when the signal is cancelled. */
export function pause(ms: number, signal: CancelSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}

/** The longest delay that Node.js timers accept, in milliseconds. */
const timeoutMsMax = 2 ** 31 - 1;

/** A deadline. Dispose of it to release its timer and listeners. */
interface TimeLimit extends Disposable {
  readonly signal: AbortSignal;
  /** Whether the deadline passed, as opposed to another signal being aborted. */
  isOverdue(): boolean;
}

/**
 * A signal that is aborted after `ms` milliseconds, or with any of `others`. Disposing of it removes its timer and
 * listeners at once; `AbortSignal.timeout` and `AbortSignal.any` keep both until a full garbage collection.
 */
export function limitTime(ms: number, others: readonly AbortSignal[]): TimeLimit {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  let isOverdue = false;
  const end = (): void => {
    isOverdue = true;
    abort();
  };
  const timer = setTimeout(end, Math.min(timeoutMsMax, Math.max(1, ms)));
  for (const other of others) other.addEventListener("abort", abort);
  if (others.some(({ aborted }) => aborted)) abort();
  return {
    signal: controller.signal,
    isOverdue: () => isOverdue,
    [Symbol.dispose]() {
      clearTimeout(timer);
      for (const other of others) other.removeEventListener("abort", abort);
    },
  };
}
