/** Keeps the holds of running calls alive. */
import type { Source, Work } from "./dispatcher.ts";
import type { LedgerTimings } from "./ledger.ts";
import type { Row, Statement } from "./link.ts";

/** How many looks for holds to renew there are in a period: a hold is at most one and a third periods old
 * by then, and one that a batch had locked gets more chances before it expires. */
const looksPerPeriod = 3;

/** The most holds of one statement. */
const renewMax = 1_000;

/** Renews holds by id. Waits for nobody (a locked hold is just being settled), and knows the database's clock only. */
export const renewStatement: Statement = {
  name: "ledger_renew",
  text: "select ledger_renew($1, $2) as count",
};

/** The open holds of this process, oldest first. */
export class Renewer implements Source {
  readonly #onWork: () => void;
  readonly #ttlMs: number;
  readonly #renewMs: number;
  readonly #lookMs: number;
  readonly #timer: NodeJS.Timeout;
  /** By id: when it is due, on the clock of `performance.now()`. In this order, for a renewed hold goes
   * to the end. */
  readonly #due = new Map<string, number>();

  /** `holdTtlMs`: how long a renewed hold lives from now on. */
  constructor(onWork: () => void, timings: Pick<LedgerTimings, "holdTtlMs" | "renewMs">) {
    this.#onWork = onWork;
    this.#ttlMs = timings.holdTtlMs;
    this.#renewMs = timings.renewMs;
    this.#lookMs = timings.renewMs / looksPerPeriod;
    this.#timer = setInterval(() => this.look(), this.#lookMs);
    this.#timer.unref();
  }

  /** How many holds are open. */
  get size(): number {
    return this.#due.size;
  }

  /** A hold was made that was asked for at `askedMs`, on the clock of `performance.now()`. */
  add(id: string, askedMs: number): void {
    this.#due.set(id, askedMs + this.#renewMs);
  }

  /** A hold was ended. */
  delete(id: string): void {
    this.#due.delete(id);
  }

  /** Asks for a turn where a hold is due. */
  look(): void {
    const first = this.#due.values().next().value;
    if (first !== undefined && first <= performance.now()) this.#onWork();
  }

  /** Stops looking. */
  stop(): void {
    clearInterval(this.#timer);
  }

  take(): Work | undefined {
    const now = performance.now();
    const ids: string[] = [];
    for (const [id, dueMs] of this.#due) {
      if (dueMs > now || ids.length >= renewMax) break;
      ids.push(id);
    }
    if (ids.length === 0) return undefined;
    if (ids.length === renewMax) this.#onWork();
    // At once, not with the answer: the next turn must not take the same ones.
    this.#postpone(ids, this.#lookMs);
    return {
      statement: renewStatement,
      values: [`{${ids.join(",")}}`, this.#ttlMs],
      done: (row: Row) => {
        if (row?.["count"] === ids.length) this.#postpone(ids, this.#renewMs);
      },
      refused: () => {},
    };
  }

  /** Holds that were ended meanwhile stay out. */
  #postpone(ids: readonly string[], ms: number): void {
    const dueMs = performance.now() + ms;
    for (const id of ids) if (this.#due.delete(id)) this.#due.set(id, dueMs);
  }
}
