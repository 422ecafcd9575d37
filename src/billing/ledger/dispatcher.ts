/** Shares a few connections among many sources of work: in turns, one statement of a source at a time. */
import { isLost, isRefused, LedgerConnection, type Row, type Statement } from "./connection.ts";

/** One statement to send. It is sent again until it is answered. */
export interface Work {
  readonly statement: Statement;
  readonly values: readonly (string | number | null)[];
  /** Called when its bytes are on their way, each time. Default: nobody. */
  sent?(): void;
  /** Called with the answer. */
  done(row: Row): void;
  /** Called where the statement itself is at fault: it is not sent again. */
  refused(error: unknown): void;
}

/** Has work now and then, and says so by {@link Dispatcher.wake}. */
export interface WorkSource {
  /** The next work, or `undefined`. Not called while a work of this source is under way. */
  take(): Work | undefined;
}

/** What a {@link Dispatcher} needs. */
export interface DispatcherOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  /** How many connections. */
  readonly connections: number;
  /** Called before a work is sent again, with the reason. */
  readonly onResend: (error: unknown) => void;
}

/** The pause before a work is sent again that the server could not do just now, in milliseconds. */
const retryMs = 50;

/** Sends the work of its sources. */
export class Dispatcher {
  readonly #connections: readonly LedgerConnection[];
  readonly #onResend: (error: unknown) => void;
  /** Free connections; the last one first, so that few accounts keep few connections warm. */
  readonly #idle: LedgerConnection[] = [];
  /** Sources that wait for their turn. */
  #ready: WorkSource[] = [];
  /** Sources that wait or have work under way, and whether they asked for another turn meanwhile. */
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

  /** Whether the database is known to be away: no connection is left. */
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
    // Not at once: what the other sockets of this turn of the event loop bring joins the batch. There is
    // no timer, so an idle ledger answers within one commit.
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

  /** Closes the connections. Work under way is not waited for. */
  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  #pump(): void {
    while (this.#idle.length > 0 && (this.#resend.length > 0 || this.#ready.length > 0)) {
      const connection = this.#idle.pop();
      // One that broke while idle comes back by itself.
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

  /** The source has nothing under way any more: it goes to the end of the line, or out. */
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
