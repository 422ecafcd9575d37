/**
 * Notices when the database cannot be reached, and when it can again. Every job polls the database,
 * so each of them would report the same outage again and again.
 */
import { DatabaseError } from "pg";
import type { Log } from "./first-connection.ts";

/** Options of {@link Outage}. */
export interface OutageOptions {
  /** The server, in words without a password. */
  readonly name: string;
  readonly log: Log;
  /** Resolves if the database answers. */
  readonly ask: () => Promise<unknown>;
}

/** Interval of attempts to reach the database during an outage. */
const askMs = 1_000;

/** The outages of a database, as this process sees them. */
export class Outage {
  readonly #options: OutageOptions;
  #sinceMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #asking: Promise<void> | undefined;

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  /** When the current outage began, in milliseconds since 1970. Undefined without an outage. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /**
   * Whether an error is a consequence of an outage, which has its own lines in the log. The first
   * such error begins the outage.
   */
  covers(error: unknown): boolean {
    if (!isUnreachable(error)) return false;
    if (this.#sinceMs === undefined) this.#begin();
    return true;
  }

  /** Asks no more. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#asking;
  }

  #begin(): void {
    this.#sinceMs = Date.now();
    const { name, log } = this.#options;
    log.warn(
      `the database at ${name} cannot be reached: calls wait or are refused until it answers`,
    );
    this.#timer = setInterval(() => {
      this.#asking ??= this.#ask();
    }, askMs).unref();
  }

  async #ask(): Promise<void> {
    const sinceMs = this.#sinceMs ?? 0;
    try {
      await this.#options.ask();
      clearInterval(this.#timer);
      this.#sinceMs = undefined;
      const seconds = Math.max(1, Math.round((Date.now() - sinceMs) / 1_000));
      this.#options.log.warn(
        `the database at ${this.#options.name} answers again after ${seconds} s`,
      );
    } catch {
      // The next attempt follows.
    } finally {
      this.#asking = undefined;
    }
  }
}

/** SQLSTATEs of a server that takes no connections: it starts, stops, or has none left. */
const unreachableStates = /^(?:08...|57P0[123]|53300)$/;

/**
 * Whether no connection could be used. Narrower than a lost database: a statement that waited too
 * long for a lock is no outage.
 */
function isUnreachable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; { cause } = cause) {
    if (cause instanceof DatabaseError) return unreachableStates.test(cause.code ?? "");
    if ("syscall" in cause) return true;
    if (/connect|terminated|query read timeout/i.test(cause.message)) return true;
  }
  return false;
}
