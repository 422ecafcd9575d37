/**
 * The servers of one database, of which one is the primary. Every connection of a process is made here: it goes to the
 * primary, and ends when the primary is found to be another one.
 *
 * The driver knows one host only. What libpq offers was not enough: it takes the first server that can be written to,
 * which may be an old primary that came back, and it leaves connections to a frozen one as they are.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Client, type ClientBase, type ClientConfig, type QueryConfig } from "pg";
import { setAnswerTimeout } from "../../core/async.ts";
import { readDatabaseAddress } from "../../core/database-address.ts";
import { ListeningConnection } from "./listening-connection.ts";

/** Where a database is: an address, which may name several hosts, or the servers that were made of one. */
export type DatabaseAddress = string | Servers;

/** The servers of an address. @throws where it is none; the message does not repeat it, for it may hold a password */
export function toServers(address: DatabaseAddress): Servers {
  return typeof address === "string" ? new Servers(address) : address;
}

/** How long a search for the primary may take, in milliseconds. Callers give up before; the next one joins or repeats it. */
const searchMs = 2_000;

/** How long between two questions to a standby, which may be promoted any moment, in milliseconds. */
const askAgainMs = 250;

/** How long the others may take to answer once one says that it is the primary, in milliseconds: after a failover an old
 * one may say so, too. */
const othersMs = 150;

/** No primary is there now. */
class NoPrimaryError extends Error {
  readonly code = "NO_PRIMARY";
}

/** What a server says that does not take writes. */
const readOnlyState = "25006";

/** A client as the driver makes it, with what its types leave out. */
interface Inside {
  connection: {
    stream: { destroy(error?: Error): void };
    on(event: "errorMessage", listener: (message: { readonly code?: string }) => void): void;
    on(
      event: "parameterStatus",
      listener: (message: {
        readonly parameterName: string;
        readonly parameterValue: string;
      }) => void,
    ): void;
  };
}

/**
 * How a connection is made. The driver's own timeouts run on while the event loop is blocked: a process that was starting
 * then mistook a server that had answered for one that does not.
 */
export interface ServerClientConfig
  extends Omit<ClientConfig, "connectionString" | "connectionTimeoutMillis"> {
  /** How long opening a connection may take, in milliseconds, as {@link setAnswerTimeout} counts. Default 2 s. */
  readonly connectLimitMs?: number;
  /** Statements that set up the session, such as its time limits. Default: none. */
  readonly sessionSettings?: string;
}

/** The servers of one database. */
export class Servers {
  /** The driver's class, for pools; it goes to the primary, whatever address it is given, and reads
   * {@link ServerClientConfig}. */
  readonly Client: typeof Client;
  /** An address of one host, for libraries that read no others. Contains the password. */
  readonly url: string;
  /** The hosts, for people. */
  readonly names: string;
  /** The connection on which this process hears notifications; listeners open it. */
  readonly listening = new ListeningConnection((config) => this.createClient(config));
  readonly #places: readonly Place[];
  /** The primary, as far as is known. */
  #primary: number | undefined;
  /** Counts failovers; servers of an older one are no primaries any more. 0: not known. */
  #timeline = 0;
  #search: Promise<number> | undefined;
  /** Open connections, and the server of each. */
  readonly #clients = new Map<Client, number>();

  constructor(address: string) {
    const read = readDatabaseAddress(address);
    if ("problem" in read) {
      throw new Error(
        "DATABASE_URL is not an address. Write it as postgresql://user:password@host:5432/database, with special characters of the password percent-encoded.",
      );
    }
    this.#places = read.urls.map(placeOf);
    [this.url] = read.urls;
    this.names = this.#places.map(({ name }) => name).join(", ");
    if (!this.#isMany) this.#primary = 0;
    this.Client = clientOf(this);
  }

  /** Makes a connection to the primary. */
  createClient(config: ServerClientConfig = {}): Client {
    return new this.Client(config);
  }

  /**
   * Opens a connection to the primary.
   *
   * @param limitMs how long all of it may take
   * @param open lets the driver connect, once the client has its host
   * @throws NoPrimaryError where none is found; the driver's errors
   */
  async connect(client: Client, limitMs: number, open: () => Promise<unknown>): Promise<void> {
    const late = Promise.withResolvers<never>();
    let index = this.#primary;
    const clear = setAnswerTimeout(() => {
      if (index === undefined) late.reject(new NoPrimaryError(searchTimeout));
      else breakConnection(client, silent(this.#places[index] as Place));
    }, limitMs);
    try {
      index ??= await Promise.race([this.#find(), late.promise]);
      await this.#open(client, index, open);
    } finally {
      clear();
    }
  }

  async #open(client: Client, index: number, open: () => Promise<unknown>): Promise<void> {
    const { host, port, name } = this.#places[index] as Place;
    if (this.#isMany) Object.assign(client, { host, port });
    this.#clients.set(client, index);
    client.once("end", () => this.#clients.delete(client));
    try {
      await open();
      if (this.#isMany && !(await isWritable(client))) {
        throw new NoPrimaryError(`the server at ${name} accepts no writes`);
      }
    } catch (error) {
      this.#leave(index);
      this.#clients.delete(client);
      breakConnection(client);
      throw error;
    }
  }

  /** A statement was refused because the server accepts no writes: it is the wrong one, also where there is but one, whose
   * name may lead elsewhere by now. */
  refuseWrites(client: Client): void {
    this.#leave(this.#clients.get(client));
    // Whoever waits for the statement is told first; no pool takes the connection back.
    void client.end().catch(() => {});
  }

  get #isMany(): boolean {
    return this.#places.length > 1;
  }

  #leave(index: number | undefined): void {
    if (this.#isMany && this.#primary === index) this.#primary = undefined;
  }

  /** One search serves all who look for the primary meanwhile. */
  #find(): Promise<number> {
    this.#search ??= this.#ask().finally(() => (this.#search = undefined));
    // Whoever gave up hears of no failure.
    this.#search.catch(() => {});
    return this.#search;
  }

  /** Asks all at once. Connections to other servers end when the primary is found. */
  async #ask(): Promise<number> {
    const over = new AbortController();
    const clear = setAnswerTimeout(() => over.abort(), searchMs);
    const found: { readonly index: number; readonly timeline: number }[] = [];
    const failures: Failure[] = [];
    const first = Promise.withResolvers<void>();
    const asked = this.#places.map(async ({ url, name }, index) => {
      try {
        found.push({ index, timeline: await askUntilPrimary(url, over.signal) });
        first.resolve();
      } catch (error) {
        failures.push({ name, error });
      }
    });
    const all = Promise.all(asked);
    try {
      await Promise.race([first.promise, all]);
      const wait = delay(othersMs, undefined, { signal: over.signal }).catch(() => {});
      await Promise.race([wait, all]);
    } finally {
      clear();
      over.abort();
    }
    const [best] = found.sort(
      (one, other) => other.timeline - one.timeline || one.index - other.index,
    );
    if (best === undefined) throw noPrimary(failures);
    return this.#moveTo(best);
  }

  #moveTo({ index, timeline }: { readonly index: number; readonly timeline: number }): number {
    if (timeline < this.#timeline) {
      throw new NoPrimaryError(
        `the server at ${this.#places[index]?.name} was the primary before a failover, and the new one does not answer`,
      );
    }
    this.#primary = index;
    this.#timeline = timeline;
    for (const [client, server] of this.#clients)
      if (server !== index) breakConnection(client, moved());
    return index;
  }
}

/** Why a server is not the primary. */
interface Failure {
  readonly name: string;
  readonly error: unknown;
}

/** A wrong password or the like is told as it is: whoever configured it must know. */
function noPrimary(failures: readonly Failure[]): unknown {
  const refusal = failures.find(({ error }) => isRefusal(error));
  if (refusal !== undefined) return refusal.error;
  const reasons = failures.map(({ name, error }) => `${name} (${reasonOf(error)})`);
  const text = `no server of the database accepts writes: ${reasons.join(", ")}`;
  return new NoPrimaryError(text, { cause: failures[0]?.error });
}

function reasonOf(error: unknown): string {
  // A name with several addresses fails with one error for each.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  if (!(first instanceof Error)) return String(first);
  return first.name === "AbortError" ? "read-only, or does not answer" : first.message;
}

/** The driver's class with the servers behind it: its pools know no other way to make a connection. */
function clientOf(servers: Servers): typeof Client {
  class Own extends PrimaryClient {
    constructor(config?: ServerClientConfig) {
      super(servers, config);
    }
  }
  return Own;
}

class PrimaryClient extends Client {
  readonly #servers: Servers;
  readonly #limitMs: number;
  readonly #sessionSettings: string | undefined;
  #hasEnded = false;

  constructor(
    servers: Servers,
    { connectLimitMs = searchMs, sessionSettings, ...config }: ServerClientConfig = {},
  ) {
    super({ ...config, connectionString: servers.url });
    this.#servers = servers;
    this.#limitMs = connectLimitMs;
    this.#sessionSettings = sessionSettings;
    // Without a listener, one that breaks before its user can listen would end the process.
    this.on("error", () => {});
    onServerError(this, (code) => {
      if (code === readOnlyState) servers.refuseWrites(this);
    });
  }

  override connect(callback?: unknown): Promise<Client> {
    const opening = this.#servers.connect(this, this.#limitMs, () => this.#open());
    const connecting = opening.then((): Client => this);
    // The driver's pool asks in this way.
    if (isCallback(callback)) void tell(connecting, callback);
    return connecting;
  }

  override end(callback?: unknown): Promise<void> {
    this.#hasEnded = true;
    if (!isCallback(callback)) return super.end();
    super.end(callback);
    return Promise.resolve();
  }

  /**
   * As the driver's, with promises of its own. Those of the driver keep every statement alive until the next full garbage
   * collection, because its closures refer to the statement: with it the call that sent it, its buffers included. In a
   * flood of streams, each collection of the young generation left 650 KB of buffers instead of 50. Full collections cost
   * 100 ms of CPU, and came every 0.8 s.
   */
  // `never` stands for the results of all overloads.
  override query(statement: unknown, values?: unknown, callback?: unknown): never {
    const ask = super.query.bind(this) as (...asked: readonly unknown[]) => unknown;
    if (isSubmittable(statement) || isCallback(values) || isCallback(callback)) {
      return ask(statement, values, callback) as never;
    }
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    // A copy, for the driver writes its callback into it.
    const own = typeof statement === "string" ? statement : { ...(statement as QueryConfig) };
    ask(own, values, answerTo(this, resolve, reject));
    return promise.catch(rejectHere) as never;
  }

  async #open(): Promise<void> {
    if (this.#hasEnded) throw new Error("the connection was ended before it was open");
    await super.connect();
    if (this.#sessionSettings !== undefined) await super.query(this.#sessionSettings);
  }
}

async function tell(work: Promise<unknown>, callback: (error?: Error) => void): Promise<void> {
  let failure: Error | undefined;
  try {
    await work;
  } catch (error) {
    failure = error as Error;
  }
  callback(failure);
}

/** The callback of a statement. It does not refer to the statement, see {@link PrimaryClient.query}. */
function answerTo(
  client: ClientBase,
  resolve: (answer: unknown) => void,
  reject: (error: unknown) => void,
) {
  return (error: unknown, answer: unknown): void => {
    if (error == null) return resolve(answer);
    // The next statement would wait behind this one, which the server may never answer.
    if (error instanceof Error && error.message === readTimeout) breakConnection(client);
    reject(error);
  };
}

/** The driver's message where a statement was not answered within its `query_timeout`. */
const readTimeout = "Query read timeout";

/** Fails with the stack of whoever asked, instead of that of the socket. */
function rejectHere(error: Error): never {
  Error.captureStackTrace(error);
  throw error;
}

/** Whether it is a statement that sends itself, such as a cursor. */
function isSubmittable(statement: unknown): boolean {
  return typeof statement === "object" && statement !== null && "submit" in statement;
}

function isCallback(value: unknown): value is (error?: Error) => void {
  return typeof value === "function";
}

/** Resolves to the timeline of a server once it is the primary. @throws where it cannot be reached, or at the end */
async function askUntilPrimary(url: string, signal: AbortSignal): Promise<number> {
  for (;;) {
    const timeline = await askTimeline(url, signal);
    if (timeline !== undefined) return timeline;
    await delay(askAgainMs, undefined, { signal });
  }
}

/** The digits of a name of a WAL file that count failovers. Managed services may keep them to themselves. */
const timelineSql = `select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline`;

/** `undefined`: it accepts no writes. */
async function askTimeline(url: string, signal: AbortSignal): Promise<number | undefined> {
  const client = new Client({
    connectionString: url,
    application_name: "uas-search",
  });
  client.on("error", () => {});
  const stop = (): void => breakConnection(client);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await client.connect();
    if (!(await isWritable(client))) return undefined;
    const asked = client.query<{ timeline: number }>(timelineSql);
    return await asked.then(
      ({ rows }) => rows[0]?.timeline ?? 0,
      () => 0,
    );
  } finally {
    signal.removeEventListener("abort", stop);
    void client.end().catch(() => {});
  }
}

async function isWritable(client: Client): Promise<boolean> {
  const text =
    "select pg_is_in_recovery() or current_setting('transaction_read_only')::bool as is_closed";
  const { rows } = await client.query<{ is_closed: boolean }>(text);
  return rows[0]?.is_closed === false;
}

/** Ends a connection at once, and the statements that wait for it with this error. The driver's own `end` waits for
 * pipelined statements to be answered. */
export function breakConnection(client: ClientBase, error?: Error): void {
  (client as unknown as Inside).connection.stream.destroy(error);
}

/** Calls `listener` with the SQLSTATE of each error that the server reports on a connection, whoever sent the statement. */
export function onServerError(client: ClientBase, listener: (code: string) => void): void {
  const { connection } = client as unknown as Inside;
  connection.on("errorMessage", ({ code = "" }) => listener(code));
}

const searchTimeout = "timeout: no server of the database accepts writes";

function silent({ name }: Place): Error {
  return new Error(`timeout: the server at ${name} does not answer`);
}

function moved(): Error {
  return new Error(
    "the connection was terminated: another server of the database is the primary now",
  );
}

/** Whether a server answered that it does not want us, as opposed to starting, stopping, or being full. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof Error &&
    "severity" in error &&
    !/^(?:57P|53|08)/.test(String(Reflect.get(error, "code")))
  );
}

/** One of the servers. */
interface Place {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly name: string;
}

function placeOf(url: string): Place {
  const { host, port } = new Client({ connectionString: url });
  return { url, host, port, name: host.startsWith("/") ? host : `${host}:${port}` };
}
