/** Settlements on their way into the database, and into the journal where that does not take them. */
import { journalAfterMs } from "../config/limits.ts";
import type { Journal } from "./journal.ts";
import type { PendingSettle } from "./lane-items.ts";

/** What {@link Settling} needs. */
export interface SettlingOptions {
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
