/** The extensions that wait for the database. */
import { ShortLivedSet } from "../../core/short-lived.ts";
import { type AccountQueue, type ExtendItem, extendItem } from "./account-queue.ts";
import { type ExtendOperation, type ExtendVerdict, unavailable } from "./ledger.ts";

/**
 * The extensions of a process without an answer yet: pending while the database does not answer,
 * however long.
 */
export class PendingExtends {
  readonly #items = new ShortLivedSet<ExtendItem>();

  /** Number of pending extensions; merged ones of a hold count once. */
  get size(): number {
    return this.#items.size;
  }

  /** Adds an extension to its account's queue. */
  add(operation: ExtendOperation, queue: AccountQueue): Promise<ExtendVerdict> {
    if (operation.amountNanos < 0n || (operation.checkpointNanos ?? 0n) < 0n) {
      return Promise.reject(new RangeError("an extension cannot be negative"));
    }
    return new Promise((resolve, reject) => {
      const item = extendItem(operation);
      item.waiters.push({ resolve, reject });
      this.#items.add(queue.addExtend(item));
    });
  }

  /** Removes an extension that was answered. */
  delete(item: ExtendItem): void {
    this.#items.delete(item);
  }

  /** Rejects all of them: the ledger closes. */
  close(): void {
    for (const { waiters } of this.#items.list()) {
      for (const { reject } of waiters) reject(unavailable("the gateway is stopping"));
    }
  }
}
