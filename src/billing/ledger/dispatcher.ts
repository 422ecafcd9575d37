/**
 * Shares a few connections among many sources of work: in turns, one statement per source at a
 * time.
 */
import type { DatabaseAddress } from "../../db/pool/server.ts";
import {
  isLasting,
  isLost,
  isRefused,
  LedgerConnection,
  type Row,
  type Statement,
  type StatementValue,
} from "./ledger-connection.ts";

/** One statement to send. It is re-sent until it is answered. */
export interface Work {
  readonly statement: Statement;
  readonly values: readonly StatementValue[];
  /** Pause of its source before its next turn. Default: no pause. */
  readonly restMs?: number;
  /** Called after the pause. Default: no callback. */
  rested?(): void;
  /** Called each time its bytes have been written to the connection. Default: no callback. */
  sent?(): void;
  /** Called with the answer. */
  done(row: Row): void;
  /** Called if the database refuses the statement itself: it is not re-sent. */
  refused(error: unknown): void;
}

/**
 * The place of a source: `idle`, or `active` while it waits for its turn, has work under way or
 * rests, or `woken` if it was woken meanwhile.
 */
export type Turn = "idle" | "active" | "woken";

/** A source of work, which calls {@link Dispatcher.wake} when it has some. */
export interface WorkSource {
  /** Its place in the dispatcher's turns, which alone changes it; at first `idle`. */
  turn: Turn;
  /** The next work, or `undefined`. Not called while a work of this source is under way. */
  take(): Work | undefined;
}

/** Options of {@link Dispatcher}. */
interface DispatcherOptions {
  /** The database. Contains a password: never logged. */
  readonly url: DatabaseAddress;
  /** The number of connections. */
  readonly connections: number;
  /** Called with the reason before work is re-sent. */
  readonly onResend: (error: unknown) => void;
  /**
   * Called when the server begins to refuse work that only a change of the database can help, with
   * the reason.
   */
  readonly onBlocked: (error: unknown) => void;
  /** Called when the last such work has passed. */
  readonly onUnblocked: () => void;
}

/** Work on its way to the database. */
interface Sending {
  readonly source: WorkSource;
  readonly work: Work;
  /** Number of consecutive errors from the server. */
  readonly failures: number;
}

/**
 * The first pause before work is re-sent that the server could not do. It doubles with each
 * failure.
 */
const retryMs = 50;

/** The longest pause: a repaired database is used again after at most this. */
const retryMaxMs = 5_000;

/** Sends the work of its sources. */
export class Dispatcher {
  readonly #connections: readonly LedgerConnection[];
  readonly #options: DispatcherOptions;
  /**
   * Free connections. The last one is used first, so that few accounts keep few connections warm.
   */
  readonly #idle: LedgerConnection[] = [];
  /** Sources that wait for their turn. */
  #ready: WorkSource[] = [];
  /** Number of sources that are not idle. */
  #active = 0;
  /** Work of unknown or failed outcome: first in turn. */
  #resend: Sending[] = [];
  /** Work that only a change of the database can help. */
  readonly #blocked = new Set<Work>();
  #scheduled = false;
  #onDrained: (() => void)[] = [];

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const onIdle = (connection: LedgerConnection): void => {
      if (!this.#idle.includes(connection)) this.#idle.push(connection);
      this.#pump();
    };
    this.#connections = Array.from(
      { length: options.connections },
      () => new LedgerConnection({ url: options.url, onIdle }),
    );
  }

  /** Whether the database is known to be unreachable: no connection is open. */
  get isAway(): boolean {
    return !this.#connections.some((connection) => connection.isOpen);
  }

  /** Gives the source a turn soon. */
  wake(source: WorkSource): void {
    if (source.turn !== "idle") {
      source.turn = "woken";
      return;
    }
    source.turn = "active";
    this.#active++;
    this.#ready.push(source);
    if (this.#scheduled || this.#idle.length === 0) return;
    // Not at once: operations from other sockets of this turn of the event loop join the batch. Not
    // by a timer, so that an idle ledger answers within one commit.
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  /** Resolves when no source has work left. */
  async drained(): Promise<void> {
    if (this.#active > 0) await new Promise<void>((resolve) => this.#onDrained.push(resolve));
  }

  /** Closes the connections, without waiting for work under way. */
  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  #pump(): void {
    while (this.#idle.length > 0 && (this.#resend.length > 0 || this.#ready.length > 0)) {
      const connection = this.#idle.pop();
      // One that broke while idle reconnects by itself.
      if (!connection?.isIdle) continue;
      const next = this.#next();
      if (next) void this.#send(connection, next);
      else this.#idle.push(connection);
    }
  }

  #next(): Sending | undefined {
    const resent = this.#resend.shift();
    if (resent) return resent;
    for (let source = this.#ready.shift(); source; source = this.#ready.shift()) {
      source.turn = "active";
      const work = source.take();
      if (work) return { source, work, failures: 0 };
      this.#finishTurn(source);
    }
    return undefined;
  }

  async #send(connection: LedgerConnection, sent: Sending): Promise<void> {
    const { source, work } = sent;
    let row: Row;
    try {
      const answer = connection.run(work.statement, work.values);
      // The driver has written before it returns.
      work.sent?.();
      row = await answer;
    } catch (error) {
      if (!isRefused(error)) return this.#sendAgain(error, sent);
      this.#unblock(work);
      work.refused(error);
      return this.#finishTurn(source);
    }
    this.#unblock(work);
    work.done(row);
    if (work.restMs === undefined) return this.#finishTurn(source);
    setTimeout(() => {
      work.rested?.();
      this.#finishTurn(source);
    }, work.restMs);
  }

  #sendAgain(error: unknown, sent: Sending): void {
    const { onResend, onBlocked } = this.#options;
    onResend(error);
    if (isLasting(error)) {
      if (this.#blocked.size === 0) onBlocked(error);
      this.#blocked.add(sent.work);
    }
    const isAway = isLost(error);
    const queue = (): void => {
      this.#resend.push({ ...sent, failures: isAway ? 0 : sent.failures + 1 });
      this.#pump();
    };
    // A lost connection is pause enough.
    if (isAway) queue();
    else setTimeout(queue, Math.min(retryMs * 2 ** sent.failures, retryMaxMs));
  }

  #unblock(work: Work): void {
    if (this.#blocked.delete(work) && this.#blocked.size === 0) this.#options.onUnblocked();
  }

  /** Ends the turn of a source: it is queued again if it was woken meanwhile. */
  #finishTurn(source: WorkSource): void {
    const isWoken = source.turn === "woken";
    source.turn = "idle";
    this.#active--;
    if (isWoken) {
      this.wake(source);
    } else if (this.#active === 0) {
      for (const resolve of this.#onDrained.splice(0)) resolve();
    }
  }
}
