import { freeWorkAccountMax } from "../core/limits.ts";
import { gatewayBusy, gatewayStopping } from "../core/caller.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";

/**
 * Counts the running calls. A stopping gateway lets them finish. An overloaded gateway refuses
 * further calls at once, because otherwise all calls would wait for seconds.
 *
 * Free work (token counts, polls) is counted apart, with a limit for each account: it takes no
 * capacity from calls that are paid for (R-LIM-2).
 */
export class RunningCalls {
  #count = 0;
  #freeCount = 0;
  /** Running free work by account. */
  readonly #free = new Map<string, number>();
  readonly #max: number;
  readonly #onRefused: () => void;
  #isOpen = true;
  readonly #onIdle = new Set<() => void>();

  /**
   * @param max the limit of concurrent calls. Default: no limit
   * @param onRefused called with each call that the limit refuses. Default: no callback
   */
  constructor(max = Number.POSITIVE_INFINITY, onRefused: () => void = () => {}) {
    this.#max = max;
    this.#onRefused = onRefused;
  }

  /** The number of running calls, without free work. */
  get count(): number {
    return this.#count;
  }

  /** Whether new calls are accepted. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Throws at the limit of concurrent calls. @throws GatewayError SERVICE_UNAVAILABLE */
  requireCapacity(): void {
    if (this.#count < this.#max) return;
    this.#onRefused();
    throw gatewayBusy(this.#max);
  }

  /** Counts a new call. @throws GatewayError SERVICE_UNAVAILABLE while draining and at the limit */
  enter(): void {
    if (!this.#isOpen) throw gatewayStopping();
    this.requireCapacity();
    this.#count++;
  }

  /** Removes a call that has ended, settlement included. */
  leave(): void {
    this.#count--;
    this.#tellIdle();
  }

  /**
   * Runs free work of an account. All accounts together may run as much of it as there may be
   * calls.
   *
   * @throws GatewayError RATE_LIMIT_EXCEEDED beyond the share of the account; SERVICE_UNAVAILABLE
   * while draining and where all run too much; what `work` throws
   */
  async runFree<Result>(accountId: string, work: () => Promise<Result>): Promise<Result> {
    if (!this.#isOpen) throw gatewayStopping();
    const own = this.#free.get(accountId) ?? 0;
    if (own >= freeWorkAccountMax) throw shareUsed();
    if (this.#freeCount >= this.#max) throw gatewayBusy(this.#max);
    this.#free.set(accountId, own + 1);
    this.#freeCount++;
    try {
      return await work();
    } finally {
      this.#leaveFree(accountId);
    }
  }

  #leaveFree(accountId: string): void {
    const others = (this.#free.get(accountId) ?? 1) - 1;
    if (others > 0) this.#free.set(accountId, others);
    else this.#free.delete(accountId);
    this.#freeCount--;
    this.#tellIdle();
  }

  get #isIdle(): boolean {
    return this.#count === 0 && this.#freeCount === 0;
  }

  #tellIdle(): void {
    if (!this.#isIdle) return;
    for (const idle of this.#onIdle) idle();
  }

  /**
   * Refuses new calls. Resolves when the running ones and free work have ended, at the latest after
   * `timeoutMs`.
   */
  async drain(timeoutMs: number): Promise<void> {
    this.#isOpen = false;
    if (this.#isIdle) return;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#onIdle.delete(finish);
        resolve();
      };
      const timer = setTimeout(finish, timeoutMs);
      this.#onIdle.add(finish);
    });
  }
}

function shareUsed(): GatewayError {
  return new GatewayError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    `Rate limit exceeded: the account already runs ${freeWorkAccountMax} token counts, polls and other free requests at once, which is its maximum; wait until one has ended, or retry after the time in the retry-after header`,
    { retryAfterSeconds: 1 },
  );
}
