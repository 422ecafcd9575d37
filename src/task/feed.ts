/**
 * Hears of changes of tasks, on a connection of its own, and wakes who waits for them. While that connection is
 * down, whoever waits is woken once a second to look for himself.
 */
import { Listener } from "../db/listener.ts";

/** What a {@link TaskFeed} needs. */
export interface TaskFeedOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
}

/** Waits for changes of one task. */
export interface Subscription extends Disposable {
  /** Resolves at the next change since it was made or last resolved, after `ms`, or when `signal` is aborted. */
  next(ms: number, signal: AbortSignal): Promise<void>;
}

/** Listens from {@link start} to {@link close}. */
export class TaskFeed {
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #listener: Listener;

  constructor({ url }: TaskFeedOptions) {
    this.#listener = new Listener({
      url,
      channel: "task_changed",
      applicationName: "uas-task-changes",
      onNotice: (taskId) => this.#wake(taskId),
      onGap: () => this.#wakeAll(),
    });
  }

  /** Begins. Resolves when it listens, or the first try has failed. */
  start(): Promise<void> {
    return this.#listener.start();
  }

  /** Ends the connection, and wakes who waits. */
  async close(): Promise<void> {
    this.#wakeAll();
    await this.#listener.close();
  }

  /** Begins to wait for a task: changes from now on are not missed. */
  subscribe(taskId: string): Subscription {
    const waiter = new Waiter();
    const waiters = this.#waiters.get(taskId) ?? new Set();
    this.#waiters.set(taskId, waiters.add(waiter));
    return {
      next: (ms, signal) => waiter.next(ms, signal),
      [Symbol.dispose]: () => {
        waiters.delete(waiter);
        if (waiters.size === 0 && this.#waiters.get(taskId) === waiters) {
          this.#waiters.delete(taskId);
        }
      },
    };
  }

  #wake(taskId: string): void {
    for (const waiter of this.#waiters.get(taskId) ?? []) waiter.wake();
  }

  #wakeAll(): void {
    for (const taskId of this.#waiters.keys()) this.#wake(taskId);
  }
}

class Waiter {
  #isWoken = false;
  #wake: (() => void) | undefined;

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  async next(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#isWoken && !signal.aborted && ms > 0) await this.#sleep(ms, signal);
    this.#isWoken = false;
  }

  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener("abort", end);
      this.#wake = end;
    });
  }
}
