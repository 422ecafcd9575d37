/** Shares a few connections among many sources of work: in turns, one statement per source at a time. */
import { isLost, isRefused, LedgerConnection, type Row, type Statement } from "./connection.ts";

/** One statement to send. It is re-sent until it is answered. */
export interface Work {
  readonly statement: Statement;
  readonly values: readonly (string | number | null)[];
  /** Called each time its bytes have been written to the connection. Default: nothing. */
  sent?(): void;
  /** Called with the answer. */
  done(row: Row): void;
  /** Called where the statement itself is at fault: it is not re-sent. */
  refused(error: unknown): void;
}

/** A source of work, which calls {@link Dispatcher.wake} when it has some. */
export interface WorkSource {
  /** The next work, or `undefined`. Not called while a work of this source is under way. */
  take(): Work | undefined;
}

/** Options of {@link Dispatcher}. */
export interface DispatcherOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  /** The number of connections. */
  readonly connections: number;
  /** Called with the reason before work is re-sent. */
  readonly onResend: (error: unknown) => void;
}

/** The pause before work is re-sent that the server could not do just now, in milliseconds. */
const retryMs = 50;

/** Sends the work of its sources. */
export class Dispatcher {
  readonly #connections: readonly LedgerConnection[];
  readonly #onResend: (error: unknown) => void;
  /** Free connections. The last one is used first, so that few accounts keep few connections warm. */
  readonly #idle: LedgerConnection[] = [];
  /** Sources that wait for their turn. */
  #ready: WorkSource[] = [];
  /** Sources that are ready or have work under way, and whether they were woken again meanwhile. */
  readonly #active = new Map<WorkSource, { again: boolean }>();
  /** Work of unknown or failed outcome: first in turn. */
  #resend: { source: WorkSource; work: Work }[] = [];
  #scheduled = false;
  #onDrained: (() => void)[] = [];

  constructor(options: DispatcherOptions) {
    this.#onResend = options.onResend;
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
    const active = this.#active.get(source);
    if (active) {
      active.again = true;
      return;
    }
    this.#active.set(source, { again: false });
    this.#ready.push(source);
    if (this.#scheduled || this.#idle.length === 0) return;
    // Not at once: operations from other sockets of this turn of the event loop join the batch. There is no timer, so
    // that an idle ledger answers within one commit.
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  /** Resolves when no source has work any more. */
  async drained(): Promise<void> {
    if (this.#active.size > 0) await new Promise<void>((resolve) => this.#onDrained.push(resolve));
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
      if (next) void this.#send(connection, next.source, next.work);
      else this.#idle.push(connection);
    }
  }

  #next(): { source: WorkSource; work: Work } | undefined {
    const resent = this.#resend.shift();
    if (resent) return resent;
    for (let source = this.#ready.shift(); source; source = this.#ready.shift()) {
      const active = this.#active.get(source);
      if (active) active.again = false;
      const work = source.take();
      if (work) return { source, work };
      this.#finishTurn(source);
    }
    return undefined;
  }

  async #send(connection: LedgerConnection, source: WorkSource, work: Work): Promise<void> {
    let row: Row;
    try {
      const answer = connection.run(work.statement, work.values);
      // The driver has written before it returns.
      work.sent?.();
      row = await answer;
    } catch (error) {
      if (!isRefused(error)) return this.#sendAgain(error, { source, work });
      work.refused(error);
      return this.#finishTurn(source);
    }
    work.done(row);
    this.#finishTurn(source);
  }

  #sendAgain(error: unknown, again: { source: WorkSource; work: Work }): void {
    this.#onResend(error);
    const queue = (): void => {
      this.#resend.push(again);
      this.#pump();
    };
    // A lost connection is pause enough.
    if (isLost(error)) queue();
    else setTimeout(queue, retryMs);
  }

  /** The source has no work under way any more: it queues again where it was woken meanwhile. */
  #finishTurn(source: WorkSource): void {
    const again = this.#active.get(source)?.again ?? false;
    this.#active.delete(source);
    if (again) {
      this.wake(source);
    } else if (this.#active.size === 0) {
      for (const resolve of this.#onDrained.splice(0)) resolve();
    }
  }
}
