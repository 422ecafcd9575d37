/**
 * Keeps this process and its holds alive: renews the leases of open holds, and sends the process's
 * heartbeat.
 */
import type { Turn, Work, WorkSource } from "./dispatcher.ts";
import type { Failpoint } from "./failpoints.ts";
import type { LedgerTimings } from "./ledger.ts";
import type { Row, Statement } from "./ledger-connection.ts";

/**
 * Number of checks for due holds per period. A hold is then at most one and a third periods old
 * when it is renewed, and a hold that a batch had locked gets more chances before it expires.
 */
const checksPerPeriod = 3;

/** The most holds of one statement. */
const renewMax = 1_000;

/** Renews holds by id, by the database's clock. Skips locked holds: they are just being settled. */
export const renewStatement: Statement = {
  name: "ledger_renew",
  text: "select ledger_renew($1, $2) as count",
};

/** Renews the open holds of this process, oldest first. */
export class LeaseRenewal implements WorkSource {
  turn: Turn = "idle";
  readonly #onWork: () => void;
  readonly #ttlMs: number;
  readonly #renewMs: number;
  readonly #checkMs: number;
  readonly #timer: NodeJS.Timeout;
  /**
   * By id: when it is due, on the clock of `performance.now()`. In that order, for a renewed hold
   * goes to the end.
   */
  readonly #due = new Map<string, number>();

  /**
   * @param onWork requests a turn @param timings `holdTtlMs`: lifetime of a hold from its renewal
   * on
   */
  constructor(onWork: () => void, timings: Pick<LedgerTimings, "holdTtlMs" | "renewMs">) {
    this.#onWork = onWork;
    this.#ttlMs = timings.holdTtlMs;
    this.#renewMs = timings.renewMs;
    this.#checkMs = timings.renewMs / checksPerPeriod;
    this.#timer = setInterval(() => this.wakeIfDue(), this.#checkMs);
    this.#timer.unref();
  }

  /** Number of open holds. */
  get size(): number {
    return this.#due.size;
  }

  /** Adds a hold that was requested at `startMs`, on the clock of `performance.now()`. */
  add(id: string, startMs: number): void {
    this.#due.set(id, startMs + this.#renewMs);
  }

  /** Removes a hold that has ended. */
  delete(id: string): void {
    this.#due.delete(id);
  }

  /** Asks for a turn if a hold is due. */
  wakeIfDue(): void {
    const first = this.#due.values().next().value;
    if (first !== undefined && first <= performance.now()) this.#onWork();
  }

  /** Stops the checks. */
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
    // At once, not with the answer: the next turn must not take the same holds.
    this.#postpone(ids, this.#checkMs);
    return {
      statement: renewStatement,
      values: [`{${ids.join(",")}}`, this.#ttlMs],
      done: (row: Row) => {
        if (row?.["count"] === ids.length) this.#postpone(ids, this.#renewMs);
      },
      refused: () => {},
    };
  }

  /** Makes holds due later. Holds that have ended meanwhile stay out. */
  #postpone(ids: readonly string[], ms: number): void {
    const dueMs = performance.now() + ms;
    for (const id of ids) if (this.#due.delete(id)) this.#due.set(id, dueMs);
  }
}

const heartbeatStatement: Statement = {
  name: "ledger_heartbeat",
  text: "select revived from ledger_heartbeat($1, $2, $3)",
};

const endNodeStatement: Statement = {
  name: "ledger_node_end",
  text: "update node set ended = clock_timestamp() where id = $1 and ended is null",
};

interface HeartbeatOptions {
  /** The process: a UUID of this start of it. */
  readonly nodeId: string;
  /** Its name for operators: host and process number. */
  readonly name: string;
  readonly heartbeatMs: number;
  readonly silentMs: number;
  /** Asks for a turn. */
  readonly onWork: () => void;
  /** Called when the database has answered; `revived`: it had declared this process dead. */
  readonly onAnswered: (revived: boolean) => void;
  readonly failpoint?: Failpoint | undefined;
}

/**
 * The heartbeat of a process, on the ledger's own connections, so that a process that can place
 * holds counts as alive. It sends one statement at a time; while the database is unreachable, one
 * is pending.
 */
export class Heartbeat implements WorkSource {
  turn: Turn = "idle";
  readonly #options: HeartbeatOptions;
  readonly #timer: NodeJS.Timeout;
  #isDue = true;
  #isEnding = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      this.#isDue = true;
      options.onWork();
    }, options.heartbeatMs);
    this.#timer.unref();
  }

  /** Sends no more heartbeats. */
  stop(): void {
    clearInterval(this.#timer);
    this.#isDue = false;
  }

  /**
   * Reports that this process has ended with no open hold, so that no other process recovers for
   * it.
   */
  end(): void {
    this.#isEnding = true;
    this.#options.onWork();
  }

  take(): Work | undefined {
    const { nodeId, name, silentMs, onAnswered, failpoint } = this.#options;
    const refused = (): void => {};
    if (this.#isEnding) {
      this.#isEnding = false;
      return { statement: endNodeStatement, values: [nodeId], done() {}, refused };
    }
    if (!this.#isDue) return undefined;
    this.#isDue = false;
    const done = (row: Row): void => {
      failpoint?.("heartbeat.answered");
      onAnswered(row?.["revived"] === true);
    };
    const sent = failpoint && { sent: () => failpoint("heartbeat.sent") };
    return {
      statement: heartbeatStatement,
      values: [nodeId, name, silentMs],
      ...sent,
      done,
      refused,
    };
  }
}
