/** The holds that wait for the database. */
import type { HoldItem } from "./account-queue.ts";
import { unavailable } from "./ledger.ts";

/** Interval of checks for holds past their deadline: together with `holdWaitMs` under 1 s. */
const deadlineCheckMs = 50;

/**
 * The holds that callers wait for. Rejects with a 503 those that the database does not answer in
 * time.
 */
export class PendingHolds {
  readonly #onAbandoned: (accountIds: ReadonlySet<string>) => void;
  /** In the order of their deadlines; answered ones are removed with the next check. */
  #items: HoldItem[] = [];
  #timer: NodeJS.Timeout | undefined;
  readonly #check = (): void => this.#abandonOverdue();
  #abandoned = 0;

  /** @param onAbandoned called with the accounts of abandoned holds */
  constructor(onAbandoned: (accountIds: ReadonlySet<string>) => void) {
    this.#onAbandoned = onAbandoned;
  }

  /** Number of pending holds. */
  get size(): number {
    return this.#items.filter(isPending).length;
  }

  /** Total number of holds that were rejected with a 503. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** Adds a hold, whose deadline is later than those of all before. */
  add(item: HoldItem): void {
    this.#items.push(item);
    // Answers that came while this process was busy are read before the immediate.
    this.#timer ??= setInterval(() => setImmediate(this.#check), deadlineCheckMs);
  }

  /** Abandons all of them: the ledger closes. */
  close(): void {
    for (const item of this.#items) this.#abandon(item);
    this.#abandonOverdue();
  }

  /** One check for all holds: a timer for each would cost more than the rest of a hold. */
  #abandonOverdue(): void {
    const now = performance.now();
    const first = this.#items.findIndex((item) => isPending(item) && item.deadlineMs > now);
    const passed = this.#items.splice(0, first < 0 ? this.#items.length : first);
    const abandoned = passed.filter((item) => this.#abandon(item));
    if (abandoned.length > 0) this.#onAbandoned(new Set(abandoned.map((item) => item.accountId)));
    if (this.#items.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Rejects a hold with a 503. Returns whether it was pending. */
  #abandon(item: HoldItem): boolean {
    if (!isPending(item)) return false;
    item.state = "abandoned";
    this.#abandoned++;
    item.reject(unavailable("the balance cannot be checked right now"));
    return true;
  }
}

function isPending(item: HoldItem): boolean {
  return item.state === "waiting" || item.state === "sent";
}
