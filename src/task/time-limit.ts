/** How long something is waited for. */

/** The longest timer, in milliseconds. */
const timeoutMsMax = 2 ** 31 - 1;

/** See {@link limitTime}. */
export interface TimeLimit extends Disposable {
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
