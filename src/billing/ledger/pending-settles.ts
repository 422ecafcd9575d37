/** The settlements that wait for the database, and their way into the journal. */
import { journalAfterMs } from "../../core/limits.ts";
import { ShortLivedMap } from "../../core/short-lived.ts";
import type { PendingSettle } from "./account-queue.ts";
import type { Journal } from "../journal/journal.ts";

interface PendingSettlesOptions {
  /** Undefined if settlements wait for the database, however long. */
  readonly journal: Journal | undefined;
  /**
   * Whether the database is known to be unreachable: settlements then go to the journal at once.
   */
  readonly isAway: () => boolean;
}

/** Interval of checks for settlements that wait too long. */
const checkMs = 50;

/** The settlements of a process that the database does not have yet. */
export class PendingSettles {
  readonly #journal: Journal | undefined;
  readonly #isAway: () => boolean;
  /** Settlements that are not durable anywhere, by id; nearly in the order of their requests. */
  readonly #waiting = new ShortLivedMap<PendingSettle>();
  /** Settlements that are in the journal or being written to it, by id. */
  readonly #kept = new Map<string, PendingSettle>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ journal, isAway }: PendingSettlesOptions) {
    this.#journal = journal;
    this.#isAway = isAway;
  }

  /** Number of settlements that the database does not have yet. */
  get size(): number {
    return this.#waiting.size + this.#kept.size;
  }

  /** Settlements that would be lost if the process ended now. */
  get unsafe(): Iterable<PendingSettle> {
    return this.#waiting.values();
  }

  /**
   * Adds a settlement. Its caller is answered as soon as it is durable, in the database or in the
   * journal.
   */
  add(item: PendingSettle): void {
    if (this.#isAway() && this.#journal?.isReady) this.#keep(this.#journal, item);
    else this.#wait(item);
  }

  /** Removes a settlement that the database has, or will never take. */
  delete(id: string): void {
    if (this.#waiting.delete(id) || !this.#kept.delete(id)) return;
    this.#journal?.forget(id);
  }

  /**
   * Writes settlements to the journal that have waited too long; all of them where the database
   * does not answer.
   */
  journalOverdue(): void {
    const limitMs = this.#isAway() ? Number.POSITIVE_INFINITY : performance.now() - journalAfterMs;
    this.#keepUntil(limitMs);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Writes all settlements to the journal, and closes it. Those in {@link unsafe} could not be
   * written.
   */
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
