/** One dedicated connection of the ledger to PostgreSQL, which reconnects by itself. */
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "pg";
import { type DatabaseAddress, toServer } from "../../db/pool/server.ts";

/** A statement that is prepared once per connection. */
export interface Statement {
  /** Unique within the process. */
  readonly name: string;
  readonly text: string;
}

/** A parameter of a statement. */
export type StatementValue = string | number | Buffer | null;

/** The first row of a result, or `undefined`. */
export type Row = Readonly<Record<string, string | number | boolean | null>> | undefined;

/** Options of {@link LedgerConnection}. */
interface LedgerConnectionOptions {
  /** The database. Contains a password: never logged. */
  readonly url: DatabaseAddress;
  /** Called whenever the connection is open and free. */
  readonly onIdle: (connection: LedgerConnection) => void;
}

/** Maximum wait for a connection, and for its settings. */
const connectTimeoutMs = 2_000;

/**
 * The pause between two attempts to connect: short, so that service resumes soon after an outage.
 */
const reconnectMs = 200;

/**
 * Maximum time without an answer before a statement's connection is dropped. It exceeds the
 * server's own limits below, so that only a server that does not answer at all reaches it.
 */
const answerTimeoutMs = 6_000;

/**
 * A lock that is held too long fails the statement, so that one stuck account does not block a
 * shared connection. A statement whose client is gone ends soon, if the server's platform can
 * detect that. Plans are made once: planning the call of a function with 40 parameters again took 3
 * µs of each call's 50. Statements that read tables are inside functions, whose own settings
 * prevent sequential scans planned on an empty table.
 */
const sessionSettings = `
  set lock_timeout = '900ms'; set statement_timeout = '5s';
  set plan_cache_mode = force_generic_plan; set synchronous_commit = on;
  do $$ begin
    perform set_config('client_connection_check_interval', '1s', false);
  exception when others then null; end $$`;

/** A connection: idle, busy with one statement, or reconnecting. */
export class LedgerConnection {
  readonly #options: LedgerConnectionOptions;
  readonly #closed = new AbortController();
  #client: Client | undefined;
  #busy = false;

  constructor(options: LedgerConnectionOptions) {
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
   * Runs a statement. The connection is busy until it is answered; then `onIdle` is called again.
   *
   * @throws the driver's error; {@link isLost} and {@link isRefused} classify it.
   */
  async run(statement: Statement, values: readonly StatementValue[]): Promise<Row> {
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
      const client = toServer(this.#options.url).createClient({
        connectLimitMs: connectTimeoutMs,
        application_name: "uas-ledger",
      });
      // Also for a connection that breaks while idle: no statement would notice.
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

/**
 * Whether the connection was lost, according to the SQLSTATE or its absence. The outcome of the
 * statement is then unknown.
 */
export function isLost(error: unknown): boolean {
  const code = sqlState(error);
  return code === undefined || code.startsWith("08") || code.startsWith("57P") || code === readOnly;
}

/** The address leads to a standby now: another connection may find the primary. */
const readOnly = "25006";

/**
 * Whether the statement itself is at fault (bad data, a broken constraint): a repetition would fail
 * alike.
 */
export function isRefused(error: unknown): boolean {
  const code = sqlState(error);
  return code !== undefined && (code.startsWith("22") || code.startsWith("23"));
}

/**
 * Whether a repetition helps only after a change of the database: a missing right, function or
 * table, or an error that the function raises. Not so if the server is short of something or gave
 * way to another transaction.
 */
export function isLasting(error: unknown): boolean {
  const code = sqlState(error);
  return code !== undefined && !isLost(error) && !passingClasses.has(code.slice(0, 2));
}

/**
 * SQLSTATE classes that pass by themselves: rollbacks, resources, locks, interventions and system
 * errors.
 */
const passingClasses: ReadonlySet<string> = new Set(["40", "53", "55", "57", "58"]);

/** Whether a row of this key exists already. */
export function isDuplicate(error: unknown): boolean {
  return sqlState(error) === "23505";
}

function sqlState(error: unknown): string | undefined {
  // Errors of the server have a severity; by its form alone EPIPE would look like an SQLSTATE.
  if (!(error instanceof Error) || !("severity" in error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/**
 * Connects and applies the settings. A timeout covers both: a server may accept the connection and
 * then hang.
 */
async function openSession(client: Client): Promise<void> {
  const timer = setTimeout(() => void client.end().catch(() => {}), 2 * connectTimeoutMs);
  try {
    await client.connect();
    await client.query(sessionSettings);
  } finally {
    clearTimeout(timer);
  }
}
