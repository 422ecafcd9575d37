/** Pending operations of a process: settlements (with their way into the journal), extensions, and holds. */
import { journalAfterMs } from "../../config/limits.ts";
import type { AccountQueue } from "./account-queue.ts";
import type { Journal } from "./journal.ts";
import { unavailable, type ExtendOperation, type ExtendVerdict } from "./ledger.ts";
import { extendItem, type PendingSettle, type ExtendItem, type HoldItem } from "./queue-items.ts";

interface PendingSettlesOptions {
  /** `undefined`: settlements wait for the database, however long. */
  readonly journal: Journal | undefined;
  /** Whether the database is known to be away: settlements then go to the journal at once. */
  readonly isAway: () => boolean;
}

/** Interval of checks for settlements that wait too long, in milliseconds. */
const checkMs = 50;

/** The settlements of a process that the database does not have yet. */
export class PendingSettles {
  readonly #journal: Journal | undefined;
  readonly #isAway: () => boolean;
  /** Settlements that are not durable anywhere, by id; nearly in the order of their requests. */
  readonly #waiting = new Map<string, PendingSettle>();
  /** Settlements that are in the journal or being written to it, by id. */
  readonly #kept = new Map<string, PendingSettle>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ journal, isAway }: PendingSettlesOptions) {
    this.#journal = journal;
    this.#isAway = isAway;
  }

  /** How many settlements the database does not have yet. */
  get size(): number {
    return this.#waiting.size + this.#kept.size;
  }

  /** Settlements that would be lost if the process ended now. */
  get unsafe(): Iterable<PendingSettle> {
    return this.#waiting.values();
  }

  /** Adds a settlement. Its caller is answered as soon as it is durable, in the database or in the journal. */
  add(item: PendingSettle): void {
    if (this.#isAway() && this.#journal?.isReady) this.#keep(this.#journal, item);
    else this.#wait(item);
  }

  /** Removes a settlement that the database has, or will never take. */
  delete(id: string): void {
    if (this.#waiting.delete(id) || !this.#kept.delete(id)) return;
    this.#journal?.forget(id);
  }

  /** Writes settlements to the journal that have waited too long; all of them where the database is away. */
  journalOverdue(): void {
    const limitMs = this.#isAway() ? Number.POSITIVE_INFINITY : performance.now() - journalAfterMs;
    this.#keepUntil(limitMs);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Writes all settlements to the journal, and closes it. Those in {@link unsafe} could not be written. */
  async close(): Promise<void> {
    this.#keepUntil(Number.POSITIVE_INFINITY);
    await this.#journal?.close();
    clearInterval(this.#timer);
  }

  #wait(item: PendingSettle): void {
    this.#waiting.set(item.id, item);
    if (this.#journal !== undefined)
      this.#timer ??= setInterval(() => this.journalOverdue(), checkMs);
  }

  #keepUntil(limitMs: number): void {
    for (const item of this.#waiting.values()) {
      if (item.sinceMs > limitMs || !this.#journal?.isReady) return;
      this.#waiting.delete(item.id);
      this.#keep(this.#journal, item);
    }
  }

  #keep(journal: Journal, item: PendingSettle): void {
    const { id, accountId, cost, record } = item;
    this.#kept.set(id, item);
    const entry = { id, accountId, cost, record };
    void journal.keep(entry).then((isKept) => {
      if (isKept) item.resolve();
      else if (this.#kept.delete(id)) this.#wait(item);
    });
  }
}

/** The extensions of a process without an answer yet: pending while the database is away, however long. */
export class PendingExtends {
  readonly #items = new Set<ExtendItem>();

  /** How many there are; merged ones of one hold count once. */
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
    for (const { waiters } of this.#items) {
      for (const { reject } of waiters) reject(unavailable("the gateway is stopping"));
    }
  }
}

/** Interval of checks for holds past their deadline, in milliseconds: together with `holdWaitMs` under 1 s. */
const deadlineCheckMs = 50;

/** The holds that callers wait for. Rejects with a 503 those that the database does not answer in time. */
export class PendingHolds {
  readonly #onAbandoned: (accountIds: ReadonlySet<string>) => void;
  /** In the order of their deadlines; answered ones are removed with the next check. */
  #items: HoldItem[] = [];
  #timer: NodeJS.Timeout | undefined;
  #abandoned = 0;

  /** @param onAbandoned called with the accounts of abandoned holds */
  constructor(onAbandoned: (accountIds: ReadonlySet<string>) => void) {
    this.#onAbandoned = onAbandoned;
  }

  /** How many holds are pending. */
  get size(): number {
    return this.#items.filter(isPending).length;
  }

  /** How many were rejected with a 503, in all. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** Adds a hold, whose deadline is later than those of all before. */
  add(item: HoldItem): void {
    this.#items.push(item);
    this.#timer ??= setInterval(() => this.#abandonOverdue(), deadlineCheckMs);
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
