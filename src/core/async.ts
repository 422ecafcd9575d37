import { databaseUnavailable } from "./database-lost.ts";

/** Work that a process does by itself, again and again, never twice at once. */

/** See {@link singly}. */
interface Single {
  /** Runs the job, unless it runs already; resolves when that run has ended. Never rejects. */
  (): Promise<void>;
  /** Waits for the run under way. */
  ended(): Promise<void>;
}

/** Makes a job run one at a time. @param failed told of each failure */
export function singly(job: () => Promise<unknown>, failed: (error: unknown) => void): Single {
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

/* Waits for the database, but not for ever. */

/**
 * Resolves as `work` does. A database that does not even fail, because it hangs or its network does, must
 * not hold a call up.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE after `waitMs` milliseconds; what `work` throws
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

/** How long something is waited for. */

/** The longest timer, in milliseconds. */
const timeoutMsMax = 2 ** 31 - 1;

/** See {@link limitTime}. */
interface TimeLimit extends Disposable {
  readonly signal: AbortSignal;
  /** Whether its time was over. */
  isOverdue(): boolean;
}

/**
 * A signal that is aborted after some time, and with any of others. Nothing of it stays behind, neither on these nor
 * as a timer: `AbortSignal.timeout` and `AbortSignal.any` leave both until the garbage is collected thoroughly.
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
