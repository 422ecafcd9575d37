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

/** Into how many steps the time of {@link setAnswerTimeout} is divided. */
const answerSteps = 9;

/**
 * Calls `onLate` where an answer is not there in time, unless the timeout is cleared before. Time in which the event loop
 * was blocked (a program that is being loaded and compiled, a machine with too much work) counts as one step of nine at
 * most, however long it was: the answer lies unread in its socket, and a plain timer would fire before it is read.
 *
 * @param limitMs how long the answer may take, in milliseconds
 * @param isHeard asked at each step whether there was a sign of life since the last one, which starts the time anew.
 *   Default: there is none
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
 * Resolves as `work` does, but rejects where the database does not answer within `waitMs` milliseconds (see
 * {@link setAnswerTimeout}): one that hangs must not hold a call forever.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE after the timeout; whatever `work` throws
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

/** The longest delay that Node.js timers accept, in milliseconds. */
const timeoutMsMax = 2 ** 31 - 1;

/** A deadline. Dispose of it to release its timer and listeners. */
interface TimeLimit extends Disposable {
  readonly signal: AbortSignal;
  /** Whether the deadline passed, as opposed to another signal being aborted. */
  isOverdue(): boolean;
}

/**
 * A signal that is aborted after `ms` milliseconds with a `TimeoutError`, or with any of `others` and its reason. Disposing of
 * it removes its timer and listeners at once. With a listener, Node.js keeps an `AbortSignal.timeout` until its time has
 * passed, whoever still needs it: 0.7 KB for each file that was stored in the last 30 minutes.
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
