/** Shares a few connections among many sources of work: in turns, one statement of a source at a time. */
import { isLost, isRefused, Link, type Row, type Statement } from "./connection.ts";

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
export interface Source {
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
  readonly #links: readonly Link[];
  readonly #onResend: (error: unknown) => void;
  /** Free connections; the last one first, so that few accounts keep few connections warm. */
  readonly #idle: Link[] = [];
  /** Sources that wait for their turn. */
  #ready: Source[] = [];
  /** Sources that wait or have work under way, and whether they asked for another turn meanwhile. */
  readonly #active = new Map<Source, { again: boolean }>();
  /** Work of unknown or failed outcome: first in turn. */
  #resend: { source: Source; work: Work }[] = [];
  #scheduled = false;
  #onDrained: (() => void)[] = [];

  constructor(options: DispatcherOptions) {
    this.#onResend = options.onResend;
    const onIdle = (link: Link): void => {
      if (!this.#idle.includes(link)) this.#idle.push(link);
      this.#pump();
    };
    this.#links = Array.from(
      { length: options.connections },
      () => new Link({ url: options.url, onIdle }),
    );
  }

  /** Whether the database is known to be away: no connection is left. */
  get isAway(): boolean {
    return !this.#links.some((link) => link.isOpen);
  }

  /** Gives the source a turn soon. */
  wake(source: Source): void {
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
    await Promise.all(this.#links.map((link) => link.close()));
  }

  #pump(): void {
    while (this.#idle.length > 0 && (this.#resend.length > 0 || this.#ready.length > 0)) {
      const link = this.#idle.pop();
      // One that broke while idle comes back by itself.
      if (!link?.isIdle) continue;
      const next = this.#next();
      if (next) void this.#send(link, next.source, next.work);
      else this.#idle.push(link);
    }
  }

  #next(): { source: Source; work: Work } | undefined {
    const resent = this.#resend.shift();
    if (resent) return resent;
    for (let source = this.#ready.shift(); source; source = this.#ready.shift()) {
      const active = this.#active.get(source);
      if (active) active.again = false;
      const work = source.take();
      if (work) return { source, work };
      this.#rest(source);
    }
    return undefined;
  }

  async #send(link: Link, source: Source, work: Work): Promise<void> {
    let row: Row;
    try {
      const answer = link.run(work.statement, work.values);
      // The driver has written before it returns.
      work.sent?.();
      row = await answer;
    } catch (error) {
      if (!isRefused(error)) return this.#sendAgain(error, { source, work });
      work.refused(error);
      return this.#rest(source);
    }
    work.done(row);
    this.#rest(source);
  }

  #sendAgain(error: unknown, again: { source: Source; work: Work }): void {
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
  #rest(source: Source): void {
    const again = this.#active.get(source)?.again ?? false;
    this.#active.delete(source);
    if (again) {
      this.wake(source);
    } else if (this.#active.size === 0) {
      for (const resolve of this.#onDrained.splice(0)) resolve();
    }
  }
}
