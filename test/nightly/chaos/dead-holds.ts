/** Watches that the holds of dead processes end within a minute of the death (R-MON-7). */
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Findings, note } from "./check.ts";

/**
 * Maximum time for which the holds of a dead process stay open, also with the timings of
 * production.
 */
export const deadHoldsLimitMs = 60_000;

/** Interval of looks. */
const lookMs = 50;

/** Asks the database; rejects while it does not answer. */
type Ask = (
  text: string,
  values: readonly string[],
) => Promise<{ readonly rows: readonly object[] }>;

/** A name of a process in the table of nodes has its number. */
const openText = `select count(*)::int as count from open_hold h
  join node n on n.id = h.node_id where n.name = $1`;

interface DeadHoldsOptions {
  /**
   * Whether no other process is alive when one dies. The time then counts from the start of the
   * next process, which is the first that can end holds. Default false.
   */
  readonly isAlone?: boolean;
  /** Default: {@link deadHoldsLimitMs}. */
  readonly limitMs?: number;
}

/** The dead processes of a round. */
export class DeadHolds {
  readonly #ask: Ask;
  readonly #isAlone: boolean;
  readonly #limitMs: number;
  readonly #watches: Promise<{ readonly pid: number; readonly ms: number | undefined }>[] = [];
  #startedMs = 0;
  #isClosed = false;

  constructor(ask: Ask, { isAlone = false, limitMs = deadHoldsLimitMs }: DeadHoldsOptions = {}) {
    this.#ask = ask;
    this.#isAlone = isAlone;
    this.#limitMs = limitMs;
  }

  /** Watches the holds of a process of this machine that has just died. */
  add(pid: number): void {
    this.#watches.push(this.#watch(pid, performance.now()));
  }

  /** Call it when another process has started. */
  onStarted(): void {
    this.#startedMs = performance.now();
  }

  /**
   * Resolves to the longest time from a death to the end of its holds, in milliseconds; notes those
   * that took too long.
   */
  async check(findings: Findings): Promise<number> {
    let longestMs = 0;
    for (const { pid, ms } of await Promise.all(this.#watches)) {
      longestMs = Math.max(longestMs, ms ?? this.#limitMs);
      if (ms !== undefined) continue;
      note(findings, "stuck", `process ${pid} died, and after ${this.#limitMs} ms has open holds`);
    }
    return longestMs;
  }

  /** Ends all watches. */
  close(): void {
    this.#isClosed = true;
  }

  async #watch(pid: number, deathMs: number) {
    while (!this.#isClosed) {
      const isOpen = await this.#hasOpen(pid);
      const isServed = !this.#isAlone || this.#startedMs >= deathMs;
      const ms = performance.now() - (this.#isAlone && isServed ? this.#startedMs : deathMs);
      if (!isOpen) return { pid, ms };
      if (isServed && ms > this.#limitMs) break;
      await sleep(lookMs);
    }
    return { pid, ms: undefined };
  }

  async #hasOpen(pid: number): Promise<boolean> {
    try {
      const { rows } = await this.#ask(openText, [`${hostname()}:${pid}`]);
      return (rows[0] as { readonly count: number }).count > 0;
    } catch {
      return true;
    }
  }
}
