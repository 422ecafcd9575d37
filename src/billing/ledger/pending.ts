/** Settlements on their way into the database, and into the journal where that does not take them. */
import { journalAfterMs } from "../../config/limits.ts";
import type { Lane } from "./account-queue.ts";
import type { Journal } from "./journal.ts";
import { unavailable, type ExtendOperation, type ExtendVerdict } from "./ledger.ts";
import { extendItem, type PendingSettle, type ExtendItem, type HoldItem } from "./queue-items.ts";

/** What {@link Settling} needs. */
interface SettlingOptions {
  /** Default: none; then they wait for the database, however long. */
  readonly journal: Journal | undefined;
  /** Whether the database is known to be away: then nobody waits for it. */
  readonly isAway: () => boolean;
}

/** How often is looked for those that wait too long, in milliseconds. */
const lookMs = 50;

/** The settlements of a process that the database does not have yet. */
export class Settling {
  readonly #journal: Journal | undefined;
  readonly #isAway: () => boolean;
  /** Those that are durable nowhere, by id; nearly in the order in which they were asked for. */
  readonly #waiting = new Map<string, PendingSettle>();
  /** Those that are in the journal, or on their way into it, by id. */
  readonly #kept = new Map<string, PendingSettle>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ journal, isAway }: SettlingOptions) {
    this.#journal = journal;
    this.#isAway = isAway;
  }

  /** How many the database does not have yet. */
  get size(): number {
    return this.#waiting.size + this.#kept.size;
  }

  /** Those that would be lost if the process ended now. */
  get unsafe(): Iterable<PendingSettle> {
    return this.#waiting.values();
  }

  /** A settlement was asked for. It is told to be durable as soon as it is so anywhere. */
  add(item: PendingSettle): void {
    if (this.#isAway() && this.#journal?.isReady) this.#keep(this.#journal, item);
    else this.#wait(item);
  }

  /** The database has it, or will never take it. */
  delete(id: string): void {
    if (this.#waiting.delete(id) || !this.#kept.delete(id)) return;
    this.#journal?.forget(id);
  }

  /** Sends to the journal what has waited too long; all, where the database is away. */
  look(): void {
    const limitMs = this.#isAway() ? Number.POSITIVE_INFINITY : performance.now() - journalAfterMs;
    this.#keepUntil(limitMs);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Sends everything to the journal, and closes that. What is {@link unsafe} then could not be kept. */
  async close(): Promise<void> {
    this.#keepUntil(Number.POSITIVE_INFINITY);
    await this.#journal?.close();
    clearInterval(this.#timer);
  }

  #wait(item: PendingSettle): void {
    this.#waiting.set(item.id, item);
    if (this.#journal !== undefined) this.#timer ??= setInterval(() => this.look(), lookMs);
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

/* Extensions on their way: pending while the database is away, however long. */

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

/* The holds that callers wait for, and how long they may. */

/** How often is looked for holds that waited too long, in milliseconds: with `holdWaitMs` under 1 s. */
const deadlineLookMs = 50;

/** Answers holds with 503 that the database does not answer in time. */
export class WaitingHolds {
  readonly #onAbandoned: (accountIds: ReadonlySet<string>) => void;
  /** In the order of their deadlines; answered ones leave with the next look. */
  #items: HoldItem[] = [];
  #timer: NodeJS.Timeout | undefined;
  #abandoned = 0;

  /** `onAbandoned`: told the accounts of holds that nobody waits for any more. */
  constructor(onAbandoned: (accountIds: ReadonlySet<string>) => void) {
    this.#onAbandoned = onAbandoned;
  }

  /** How many callers wait. */
  get size(): number {
    return this.#items.filter(isPending).length;
  }

  /** How many were answered with 503, in all. */
  get abandoned(): number {
    return this.#abandoned;
  }

  /** A hold was asked for; its deadline is later than those of all before. */
  add(item: HoldItem): void {
    this.#items.push(item);
    this.#timer ??= setInterval(() => this.#look(), deadlineLookMs);
  }

  /** Nobody needs to wait any more: the ledger closes. */
  close(): void {
    for (const item of this.#items) this.#abandon(item);
    this.#look();
  }

  /** One look for all holds: a timer for each would cost more than the rest of a hold. */
  #look(): void {
    const now = performance.now();
    const first = this.#items.findIndex((item) => isPending(item) && item.deadlineMs > now);
    const passed = this.#items.splice(0, first < 0 ? this.#items.length : first);
    const abandoned = passed.filter((item) => this.#abandon(item));
    if (abandoned.length > 0) this.#onAbandoned(new Set(abandoned.map((item) => item.accountId)));
    if (this.#items.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Tells the caller of a hold that it takes too long. Returns whether somebody had waited. */
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
