import type { CancelSignal } from "./cancel-signal.ts";
import { databaseUnavailable } from "./database-lost.ts";

/** A job that never runs twice at once. */
interface SingleFlight {
  /** Runs the job unless it is running already. Resolves when that run has ended. Never rejects. */
  (): Promise<void>;
  /** Resolves when the current run, if any, has ended. */
  ended(): Promise<void>;
}

/**
 * Makes a job run one at a time.
 *
 * @param failed called with each failure
 */
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

/** Number of steps into which the time of {@link setAnswerTimeout} is divided. */
const answerSteps = 9;

/**
 * Calls `onLate` if an answer does not arrive in time, unless the timeout is cleared before. Time
 * in which the event loop was blocked (a program that loads and compiles, an overloaded machine)
 * counts as one step of nine at most. During that time the answer waits unread in its socket, and a
 * plain timer would fire before it is read.
 *
 * @param limitMs maximum time for the answer
 * @param isHeard checked at each step: whether any data arrived since the last step, which restarts
 * the time. Never by default
 * @returns clears the timeout
 */
export function setAnswerTimeout(
  onLate: () => void,
  limitMs: number,
  isHeard: () => boolean = () => false,
): () => void {
  let left = answerSteps;
  const step = (): void => {
    left = isHeard() ? answerSteps : left - 1;
    if (left > 0) return;
    clear();
    onLate();
  };
  const timer = setInterval(step, limitMs / answerSteps).unref();
  const clear = (): void => clearInterval(timer);
  return clear;
}

/**
 * Resolves as `work` does, but rejects if the database does not answer within `waitMs` (see {@link
 * setAnswerTimeout}). A database that hangs must not block a call indefinitely.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE after the timeout; every error of `work`
 */
export async function withTimeout<T>(waitMs: number, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const clear = setAnswerTimeout(() => reject(databaseUnavailable()), waitMs);
  try {
    return await Promise.race([work, late]);
  } finally {
    clear();
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

/** The longest delay that Node.js timers accept. */
const timeoutMsMax = 2 ** 31 - 1;

/** A deadline. Dispose of it to release its timer and listeners. */
interface TimeLimit extends Disposable {
  readonly signal: AbortSignal;
  /** Whether the deadline passed, as opposed to another signal being aborted. */
  isOverdue(): boolean;
}

/**
 * A signal that is aborted after `ms` milliseconds with a `TimeoutError`, or with any of `others`
 * and its reason. Disposing of it removes its timer and listeners at once. Node.js keeps an
 * `AbortSignal.timeout` with a listener until its time has passed, even if it is no longer needed:
 * 0.7 KB for each file that was stored in the last 30 minutes.
 */
export function limitTime(ms: number, others: readonly AbortSignal[]): TimeLimit {
  const controller = new AbortController();
  const abort = (): void =>
    controller.abort(others.find(({ aborted }) => aborted)?.reason as unknown);
  let isOverdue = false;
  const end = (): void => {
    isOverdue = true;
    controller.abort(new DOMException("the time limit was reached", "TimeoutError"));
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
