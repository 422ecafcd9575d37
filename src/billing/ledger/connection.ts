/** One dedicated connection to PostgreSQL that comes back by itself. */
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";

/** A statement that is prepared once per connection. */
export interface Statement {
  /** Unique within the process. */
  readonly name: string;
  readonly text: string;
}

/** The first row of a result, or `undefined`. */
export type Row = Readonly<Record<string, string | number | boolean | null>> | undefined;

/** What a {@link Link} needs. */
export interface LinkOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  /** Called whenever the connection is open and free. */
  readonly onIdle: (link: Link) => void;
}

/** How long to wait for a connection, and for its settings, in milliseconds. */
const connectTimeoutMs = 2_000;

/** The pause between two attempts to connect, in milliseconds: normal service soon after an outage. */
const reconnectMs = 200;

/**
 * How long a statement may go unanswered before its connection is given up, in milliseconds. Longer than
 * the server's own limits below, so that only a server that does not answer at all gets here.
 */
const answerTimeoutMs = 6_000;

/**
 * A lock that is held too long fails the statement, so that one stuck account does not keep a shared
 * connection; and a statement whose client has gone ends soon (where the server's platform can notice).
 * Plans are made once: to plan the call of a function with 40 parameters again took 3 µs of each call's 50. What reads
 * tables is inside functions, whose own settings keep a plan that was made on an empty table from being a sequential scan.
 */
const sessionSettings = `
  set lock_timeout = '900ms'; set statement_timeout = '5s';
  set plan_cache_mode = force_generic_plan; set synchronous_commit = on;
  do $$ begin
    perform set_config('client_connection_check_interval', '1s', false);
  exception when others then null; end $$`;

/** A connection: idle, busy with one statement, or coming back. */
export class Link {
  readonly #options: LinkOptions;
  readonly #closed = new AbortController();
  #client: Client | undefined;
  #busy = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    void this.#connect();
  }

  /** Whether there is a connection, as far as is known. */
  get isOpen(): boolean {
    return this.#client !== undefined;
  }

  /** Whether {@link run} can be called. */
  get isIdle(): boolean {
    return this.#client !== undefined && !this.#busy;
  }

  /**
   * Runs a statement. The link is busy until it is answered, and then announces itself as idle again.
   *
   * @throws the driver's error; see {@link isLost} for what it means.
   */
  async run(statement: Statement, values: readonly (string | number | null)[]): Promise<Row> {
    const client = this.#client;
    if (!client) throw new Error("the connection is lost");
    this.#busy = true;
    const timer = setTimeout(() => this.#drop(client), answerTimeoutMs);
    try {
      const result = await client.query<NonNullable<Row>>({ ...statement, values: [...values] });
      return result.rows[0];
    } catch (error) {
      if (isLost(error)) this.#drop(client);
      throw error;
    } finally {
      clearTimeout(timer);
      this.#busy = false;
      // After the caller has dealt with the answer: it may have more to send.
      if (this.#client) setImmediate(() => this.isIdle && this.#options.onIdle(this));
    }
  }

  /** Closes the connection; a statement under way fails. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#client?.end().catch(() => {});
    this.#client = undefined;
  }

  async #connect(): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      const client = new Client({
        connectionString: this.#options.url,
        connectionTimeoutMillis: connectTimeoutMs,
        keepAlive: true,
        application_name: "uas-ledger",
      });
      // Also for a connection that breaks while idle: no statement would tell us.
      client.on("error", () => this.#drop(client));
      client.on("end", () => this.#drop(client));
      try {
        await openSession(client);
        if (signal.aborted) return void client.end().catch(() => {});
        this.#client = client;
        this.#options.onIdle(this);
        return;
      } catch {
        void client.end().catch(() => {});
        await delay(reconnectMs, undefined, { signal, ref: false }).catch(() => {});
      }
    }
  }

  #drop(client: Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    // With a statement under way this destroys the socket at once, and the statement fails.
    void client.end().catch(() => {});
    if (!this.#closed.signal.aborted) void this.#connect();
  }
}

/** Whether the connection is gone: no SQLSTATE, or one that says so. The outcome is then unknown. */
export function isLost(error: unknown): boolean {
  const code = sqlState(error);
  return code === undefined || code.startsWith("08") || code.startsWith("57P") || code === readOnly;
}

/** The address leads to a standby now: another connection may find the primary. */
const readOnly = "25006";

/** Whether the statement itself is at fault (bad data, a broken constraint): again would fail again. */
export function isRefused(error: unknown): boolean {
  const code = sqlState(error);
  return code !== undefined && (code.startsWith("22") || code.startsWith("23"));
}

/** Whether a row is there already. */
export function isDuplicate(error: unknown): boolean {
  return sqlState(error) === "23505";
}

function sqlState(error: unknown): string | undefined {
  // What the server reports has a severity; by its form alone EPIPE would pass for an SQLSTATE.
  if (!(error instanceof Error) || !("severity" in error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** The settings have to be answered in time too: a server that accepts and then hangs is no server. */
async function openSession(client: Client): Promise<void> {
  const timer = setTimeout(() => void client.end().catch(() => {}), 2 * connectTimeoutMs);
  try {
    await client.connect();
    await client.query(sessionSettings);
  } finally {
    clearTimeout(timer);
  }
}
