/**
 * Wakes readers when a task changes, by notifications of the database. While its connection is
 * down, every reader is woken once a second to read its task again.
 */
import { WakeSignal } from "../../core/wake-signal.ts";
import { Listener } from "../../db/pool/listener.ts";
import type { DatabaseAddress } from "../../db/pool/server.ts";

/** The source of a {@link TaskFeed}'s notifications. */
export interface TaskFeedOptions {
  /** The database. Contains a password: never logged. */
  readonly url: DatabaseAddress;
}

/** Waits for changes of one task. Disposing it ends the subscription. */
export interface Subscription extends Disposable {
  /**
   * Resolves at the first change since the subscription or the last `next`, after `ms`, or when
   * `signal` is aborted.
   */
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
      onNotice: (taskId) => this.#wake(taskId),
      onGap: () => this.#wakeAll(),
    });
  }

  /**
   * Starts to listen. Resolves when it listens, or when the first attempt has failed; it then
   * retries automatically.
   */
  start(): Promise<void> {
    return this.#listener.start();
  }

  /** Wakes every reader, and ends the connection. */
  async close(): Promise<void> {
    this.#wakeAll();
    await this.#listener.close();
  }

  /** Subscribes to a task: no change from now on is missed. */
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

/** One subscription: keeps a change until the next wait. */
class Waiter {
  readonly #signal = new WakeSignal();
  #hasChanged = false;

  wake(): void {
    this.#hasChanged = true;
    this.#signal.wake();
  }

  async next(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#hasChanged && !signal.aborted && ms > 0) await this.#signal.sleep(ms, signal);
    this.#hasChanged = false;
  }
}
