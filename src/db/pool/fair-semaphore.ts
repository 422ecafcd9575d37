/**
 * A semaphore with one queue of waiters per account. The accounts take turns, and none has more
 * than its share.
 */

/** Options of an {@link FairSemaphore}. */
interface FairSemaphoreOptions {
  /** The number of permits. */
  readonly permits: number;
  /** The most permits that an account may have at once. */
  readonly shareOf: (account: string) => number;
}

/** The timeout of a waiting request. */
interface WaitTimeout {
  readonly ms: number;
  /** The error it gets. */
  readonly error: () => Error;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Hands out permits. */
export class FairSemaphore {
  readonly #options: FairSemaphoreOptions;
  #used = 0;
  readonly #usedBy = new Map<string, number>();
  /** In the order of their turns. No queue is empty. */
  readonly #queues = new Map<string, Waiter[]>();

  constructor(options: FairSemaphoreOptions) {
    this.#options = options;
  }

  /** Number of waiting requests of an account. */
  waitersOf(account: string): number {
    return this.#queues.get(account)?.length ?? 0;
  }

  /**
   * Takes a permit if the account may have one now. A free permit implies that no waiting account
   * may use it.
   */
  tryAcquire(account: string): boolean {
    const used = this.#usedBy.get(account) ?? 0;
    const { permits, shareOf } = this.#options;
    if (this.#used >= permits || used >= shareOf(account)) return false;
    this.#used += 1;
    this.#usedBy.set(account, used + 1);
    return true;
  }

  /**
   * Waits for a permit, after {@link tryAcquire} has refused one. @throws the error of the timeout,
   * or of {@link rejectWaiters}
   */
  async wait(account: string, timeout: WaitTimeout): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { resolve, reject };
    const queue = this.#queues.get(account);
    if (queue === undefined) this.#queues.set(account, [waiter]);
    else queue.push(waiter);
    const timer = setTimeout(() => {
      this.#remove(account, waiter);
      reject(timeout.error());
    }, timeout.ms);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns a permit. The next waiter gets it. */
  release(account: string): void {
    const used = (this.#usedBy.get(account) ?? 0) - 1;
    this.#used -= 1;
    if (used > 0) this.#usedBy.set(account, used);
    else this.#usedBy.delete(account);
    for (const [next, queue] of this.#queues) {
      if (!this.tryAcquire(next)) continue;
      const waiter = queue.shift();
      // The account's next waiter follows the waiters of all other accounts.
      this.#queues.delete(next);
      if (queue.length > 0) this.#queues.set(next, queue);
      return waiter?.resolve();
    }
  }

  /** Fails all waiters. */
  rejectWaiters(error: Error): void {
    const waiters = [...this.#queues.values()].flat();
    this.#queues.clear();
    for (const { reject } of waiters) reject(error);
  }

  #remove(account: string, waiter: Waiter): void {
    const queue = this.#queues.get(account)?.filter((other) => other !== waiter) ?? [];
    if (queue.length > 0) this.#queues.set(account, queue);
    else this.#queues.delete(account);
  }
}
