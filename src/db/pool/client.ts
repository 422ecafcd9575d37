/**
 * A connection to PostgreSQL: the driver's client, with a limit for opening it and statements that
 * leave no garbage.
 */
import { Client, type ClientConfig, type QueryConfig } from "pg";
import { setAnswerTimeout } from "../../core/async.ts";

/** Options of a {@link DatabaseClient}. */
export interface DatabaseClientConfig extends Omit<ClientConfig, "connectionTimeoutMillis"> {
  /**
   * Maximum time to open the connection, as {@link setAnswerTimeout} counts. The driver's timeout
   * continues while the event loop is blocked, so a starting process would drop a server that has
   * answered. Default 2 s.
   */
  readonly connectLimitMs?: number;
  /**
   * Statements that set up the session, such as its time limits. They are not startup parameters of
   * the connection, because PgBouncer and other poolers refuse those. None by default.
   */
  readonly sessionSettings?: string;
}

/** Default of {@link DatabaseClientConfig.connectLimitMs}. */
const connectLimitMsDefault = 2_000;

/** Idle time after which TCP probes the other machine. */
const keepAliveMs = 10_000;

/** The driver's message for a statement that was not answered within its `query_timeout`. */
const readTimeout = "Query read timeout";

/** The SQLSTATE of a server that accepts no writes. */
const readOnlyState = "25006";

/** A connection. Pools create it too. */
export class DatabaseClient extends Client {
  readonly #connectLimitMs: number;
  readonly #sessionSettings: string | undefined;

  constructor({ connectLimitMs, sessionSettings, ...config }: DatabaseClientConfig = {}) {
    super({ keepAlive: true, keepAliveInitialDelayMillis: keepAliveMs, ...config });
    this.#connectLimitMs = connectLimitMs ?? connectLimitMsDefault;
    this.#sessionSettings = sessionSettings;
    // Without a listener, a connection that breaks before its user listens would end the process.
    this.on("error", () => {});
  }

  /** Opens the connection and applies the session settings. */
  override connect(callback?: unknown): Promise<Client> {
    const connecting = this.#open();
    // The driver's pool passes a callback.
    if (isCallback(callback)) void report(connecting, callback);
    return connecting;
  }

  /**
   * As the driver's method, but with other promises. The driver's promises keep every statement
   * alive until the next full garbage collection, because their closures refer to the statement,
   * and with it to the call and its buffers. In a flood of streams, each collection of the young
   * generation left 650 KB of buffers instead of 50. Full collections cost 100 ms of CPU, and ran
   * every 0.8 s.
   */
  // `never` represents the results of all overloads.
  override query(statement: unknown, values?: unknown, callback?: unknown): never {
    const ask = super.query.bind(this) as (...asked: readonly unknown[]) => unknown;
    if (isSubmittable(statement) || isCallback(values) || isCallback(callback)) {
      return ask(statement, values, callback) as never;
    }
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    // A copy, because the driver writes its callback into it.
    const own = typeof statement === "string" ? statement : { ...(statement as QueryConfig) };
    ask(own, values, answerTo(this, resolve, reject));
    return promise.catch(rejectHere) as never;
  }

  async #open(): Promise<Client> {
    const late = (): void => {
      this.connection.stream.destroy(
        new Error(`timeout: the database at ${serverName(this)} does not answer`),
      );
    };
    const clear = setAnswerTimeout(late, this.#connectLimitMs);
    try {
      await super.connect();
      if (this.#sessionSettings !== undefined) await super.query(this.#sessionSettings);
      return this;
    } catch (error) {
      this.connection.stream.destroy();
      throw error;
    } finally {
      clear();
    }
  }
}

/** Passes the end of `work` to a callback. */
async function report(work: Promise<unknown>, callback: (error?: unknown) => void): Promise<void> {
  let failure: unknown;
  try {
    await work;
  } catch (error) {
    failure = error;
  }
  callback(failure);
}

/** The host and port of a connection, or the folder of its socket, for people. */
export function serverName({ host, port }: Pick<Client, "host" | "port">): string {
  return host.startsWith("/") ? host : `${host}:${port}`;
}

/**
 * The callback of a statement. It does not refer to the statement, see {@link
 * DatabaseClient.query}.
 */
function answerTo(
  client: DatabaseClient,
  resolve: (answer: unknown) => void,
  reject: (error: unknown) => void,
) {
  return (error: unknown, answer: unknown): void => {
    if (error == null) return resolve(answer);
    if (isUnusableAfter(error)) client.end(() => {});
    reject(error);
  };
}

/**
 * Whether a connection is unusable after this error. After a timeout, the next statement would wait
 * for the one that the server may never answer. A server that refuses writes is not the primary,
 * and its address may now lead to another one.
 */
function isUnusableAfter(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.message === readTimeout || ("code" in error && error.code === readOnlyState);
}

/** Fails with the stack of the caller, instead of the socket's. */
function rejectHere(error: Error): never {
  Error.captureStackTrace(error);
  throw error;
}

/** Whether it is a statement that sends itself, such as a cursor. */
function isSubmittable(statement: unknown): boolean {
  return typeof statement === "object" && statement !== null && "submit" in statement;
}

function isCallback(value: unknown): value is (error?: unknown) => void {
  return typeof value === "function";
}
