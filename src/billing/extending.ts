/** Extensions on their way: pending while the database is away, however long. */
import type { Lane } from "./lane.ts";
import { extendItem, type ExtendItem } from "./lane-items.ts";
import type { ExtendOperation, ExtendVerdict } from "./ledger.ts";
import { unavailable } from "./unavailable.ts";

/** The extensions of a process that are not answered yet. */
export class Extending {
  readonly #items = new Set<ExtendItem>();

  /** How many there are; those of one hold that have been joined count once. */
  get size(): number {
    return this.#items.size;
  }

  /** Sends one by its account's lane. */
  add(operation: ExtendOperation, lane: Lane): Promise<ExtendVerdict> {
    if (operation.amountNanos < 0n || (operation.checkpointNanos ?? 0n) < 0n) {
      return Promise.reject(new RangeError("an extension cannot be negative"));
    }
    return new Promise((resolve, reject) => {
      const item = extendItem(operation);
      item.waiters.push({ resolve, reject });
      this.#items.add(lane.addExtend(item));
    });
  }

  /** One is answered. */
  delete(item: ExtendItem): void {
    this.#items.delete(item);
  }

  /** Nobody needs to wait any more: the ledger closes. */
  close(): void {
    for (const { waiters } of this.#items) {
      for (const { reject } of waiters) reject(unavailable("the gateway is stopping"));
    }
  }
}
