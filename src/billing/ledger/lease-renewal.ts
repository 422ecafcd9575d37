/** Keeps the holds of running calls alive. */
import type { Row, Statement } from "./connection.ts";
import type { Source, Work } from "./dispatcher.ts";
import type { At } from "./failpoints.ts";
import type { LedgerTimings } from "./ledger.ts";

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

/* Tells the database that this process lives. By the ledger's own connections: who can hold, lives. */

const beatStatement: Statement = {
  name: "ledger_heartbeat",
  text: "select revived from ledger_heartbeat($1, $2, $3)",
};

const endStatement: Statement = {
  name: "ledger_node_end",
  text: "update node set ended = clock_timestamp() where id = $1 and ended is null",
};

/** What a {@link Heart} needs. */
interface HeartOptions {
  /** The process: a UUID of this start of it. */
  readonly nodeId: string;
  /** What operators know it by: host and process number. */
  readonly name: string;
  readonly heartbeatMs: number;
  readonly silentMs: number;
  /** Asks for a turn. */
  readonly onWork: () => void;
  /** The database has answered; `revived`: it had taken this process for dead. */
  readonly onAnswered: (revived: boolean) => void;
  readonly at?: At | undefined;
}

/** One statement at a time: while the database is away there is one that waits. */
export class Heart implements Source {
  readonly #options: HeartOptions;
  readonly #timer: NodeJS.Timeout;
  #isDue = true;
  #isEnding = false;

  constructor(options: HeartOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      this.#isDue = true;
      options.onWork();
    }, options.heartbeatMs);
    this.#timer.unref();
  }

  /** Beats no more. */
  stop(): void {
    clearInterval(this.#timer);
    this.#isDue = false;
  }

  /** Says that this process has ended and has nothing open: nobody need look for it. */
  end(): void {
    this.#isEnding = true;
    this.#options.onWork();
  }

  take(): Work | undefined {
    const { nodeId, name, silentMs, onAnswered, at } = this.#options;
    const refused = (): void => {};
    if (this.#isEnding) {
      this.#isEnding = false;
      return { statement: endStatement, values: [nodeId], done() {}, refused };
    }
    if (!this.#isDue) return undefined;
    this.#isDue = false;
    const done = (row: Row): void => {
      at?.("heartbeat.answered");
      onAnswered(row?.["revived"] === true);
    };
    const sent = at && { sent: () => at("heartbeat.sent") };
    return { statement: beatStatement, values: [nodeId, name, silentMs], ...sent, done, refused };
  }
}
