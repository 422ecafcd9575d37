/** Tells the database that this process lives. By the ledger's own connections: who can hold, lives. */
import type { Source, Work } from "./dispatcher.ts";
import type { Row, Statement } from "./link.ts";
import type { At } from "./points.ts";

const beatStatement: Statement = {
  name: "ledger_heartbeat",
  text: "select revived from ledger_heartbeat($1, $2, $3)",
};

const endStatement: Statement = {
  name: "ledger_node_end",
  text: "update node set ended = clock_timestamp() where id = $1 and ended is null",
};

/** What a {@link Heart} needs. */
export interface HeartOptions {
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
