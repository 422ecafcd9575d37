/** The first connection: waits for a server that is starting, and explains what is wrong. */
import { setTimeout as sleep } from "node:timers/promises";
import { Client, DatabaseError } from "pg";

/** Gets one line for the operator. */
export interface Log {
  info(line: string): void;
  warn(line: string): void;
}

/** How to wait for a server. */
export interface ConnectOptions {
  readonly log: Log;
  /** How long to wait for a server that does not answer yet, in milliseconds: as long as a database
   * container beside us may take to start. Default 15,000. */
  readonly waitMs?: number;
}

/** How long between two tries, in milliseconds. */
const retryMs = 250;

/** How long one try may take, in milliseconds. */
const tryTimeoutMs = 5_000;

/** The oldest PostgreSQL that serves, in its own numbering. */
const oldestVersion = 150_000;

/** What a server says while it starts, stops, or is full. */
const passingStates = new Set(["57P03", "57P01", "53300"]);

/** What the network says while nobody listens yet, or a container's name is not known yet. */
const passingFailures = new Set(["ECONNREFUSED", "ENOENT", "ENOTFOUND", "EAI_AGAIN", "ECONNRESET"]);

/**
 * Connects to a PostgreSQL that this program can use.
 *
 * @throws where it does not answer in time, refuses us or is too old; the message says what to do, and
 * names the server without the password.
 */
export async function connect(url: string, options: ConnectOptions): Promise<Client> {
  const deadline = Date.now() + (options.waitMs ?? 15_000);
  for (let attempt = 1; ; attempt++) {
    const client = createClient(url);
    try {
      await client.connect();
      await checkVersion(client);
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      if (!isPassing(error) || Date.now() > deadline) throw explained(client, error);
      if (attempt === 1) options.log.warn(`waiting for the database at ${address(client)}`);
      await sleep(retryMs);
    }
  }
}

function createClient(url: string): Client {
  let client: Client;
  try {
    client = new Client({ connectionString: url, connectionTimeoutMillis: tryTimeoutMs });
  } catch {
    // The original message may repeat the address, password included.
    throw new Error(
      "DATABASE_URL is not an address. Write it as postgresql://user:password@host:5432/database, with special characters of the password percent-encoded.",
    );
  }
  // A connection that breaks between two queries is seen by the next one.
  client.on("error", () => {});
  return client;
}

async function checkVersion(client: Client): Promise<void> {
  const { rows } = await client.query<{ number: number; version: string }>(
    "select current_setting('server_version_num')::int as number, current_setting('server_version') as version",
  );
  if ((rows[0]?.number ?? 0) >= oldestVersion) return;
  throw new Error(
    `The database at ${address(client)} is PostgreSQL ${rows[0]?.version}; the gateway needs version 15 or later. Upgrade it, or unset DATABASE_URL to use the embedded one.`,
  );
}

function isPassing(error: unknown): boolean {
  return passingStates.has(codeOf(error)) || passingFailures.has(codeOf(error));
}

/** One clear error in place of the driver's; what is explained already stays. */
function explained(client: Client, cause: unknown): Error {
  const said = cause instanceof Error ? cause.message : String(cause);
  const code = codeOf(cause);
  if (!(cause instanceof DatabaseError) && !code && !said.includes("timeout")) {
    return cause instanceof Error ? cause : new Error(said);
  }
  const where = `the database at ${address(client)}`;
  const advice: Readonly<Record<string, string>> = {
    "3D000": `There is no database "${client.database}" at ${address(client)}. Create it (createdb ${client.database}), or correct DATABASE_URL.`,
    "28P01": `Cannot log in to ${where}: wrong user or password. Correct DATABASE_URL.`,
    "28000": `Cannot log in to ${where}: ${said}. Correct DATABASE_URL, or the server's pg_hba.conf.`,
  };
  const otherwise = `Cannot reach ${where}: ${said || code}. Is it running, and is DATABASE_URL right?`;
  return new Error(advice[code] ?? otherwise, { cause });
}

function codeOf(error: unknown): string {
  // A name with several addresses fails with one error for each.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error && "code" in first && typeof first.code === "string"
    ? first.code
    : "";
}

function address(client: Client): string {
  return client.host.startsWith("/") ? client.host : `${client.host}:${client.port}`;
}
