/** The first connection: waits for a server that is starting, and explains failures. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, DatabaseError } from "pg";
import type { DatabaseServer } from "./pool/server.ts";

/** Receives lines for the operator. */
export interface Log {
  info(line: string): void;
  warn(line: string): void;
}

/** Options for opening the database. */
export interface OpenOptions {
  readonly log: Log;
  /** Maximum wait for a server that does not answer yet. Default {@link waitMsDefault}. */
  readonly waitMs: number;
}

/** The time that a database container on the same machine may take to start. */
export const waitMsDefault = 15_000;

/** Interval between two attempts. */
const retryMs = 250;

/** Timeout of one attempt. */
const tryTimeoutMs = 5_000;

/** The oldest supported PostgreSQL, in its numbering. */
const oldestVersion = 150_000;

/** SQLSTATEs of a server that starts, stops or has no free connection. */
const passingStates = new Set(["57P03", "57P01", "53300"]);

/** Network errors while no server listens yet, or a container's name cannot be resolved yet. */
const passingFailures = new Set(["ECONNREFUSED", "ENOENT", "ENOTFOUND", "EAI_AGAIN", "ECONNRESET"]);

/**
 * Connects to a PostgreSQL that this program can use.
 *
 * @throws if it does not answer in time, refuses the connection or is too old; the message says
 * what to do, and names the server without the password.
 */
export async function connect(
  server: DatabaseServer,
  { log, deadline }: { readonly log: Log; readonly deadline: number },
): Promise<Client> {
  for (let attempt = 1; ; attempt++) {
    const client = server.createClient({ connectLimitMs: tryTimeoutMs });
    try {
      await client.connect();
      await checkVersion(client, server);
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      if (!isPassing(error) || Date.now() > deadline) throw explained(client, server, error);
      if (attempt === 1) log.warn(`waiting for the database at ${server.name}`);
      await sleep(retryMs);
    }
  }
}

async function checkVersion(client: Client, { name }: DatabaseServer): Promise<void> {
  const { rows } = await client.query<{ number: number; version: string }>(
    "select current_setting('server_version_num')::int as number, current_setting('server_version') as version",
  );
  if ((rows[0]?.number ?? 0) >= oldestVersion) return;
  throw new Error(
    `The database at ${name} is PostgreSQL ${rows[0]?.version}; the gateway needs version 15 or later. Upgrade it, or unset DATABASE_URL to use the embedded one.`,
  );
}

function isPassing(error: unknown): boolean {
  return passingStates.has(codeOf(error)) || passingFailures.has(codeOf(error));
}

/** A clear error in place of the driver's error; an error that is clear already is unchanged. */
function explained(client: Client, { name }: DatabaseServer, cause: unknown): Error {
  const said = cause instanceof Error ? cause.message : String(cause);
  const code = codeOf(cause);
  if (!(cause instanceof DatabaseError) && !code && !said.includes("timeout")) {
    return cause instanceof Error ? cause : new Error(said);
  }
  const where = `the database at ${name}`;
  const advice: Readonly<Record<string, string>> = {
    "3D000": `There is no database "${client.database}" at ${name}. Create it (createdb ${client.database}), or correct DATABASE_URL.`,
    "28P01": `Cannot log in to ${where}: wrong user or password. Correct DATABASE_URL.`,
    "28000": `Cannot log in to ${where}: ${said}. Correct DATABASE_URL, or the server's pg_hba.conf.`,
  };
  const otherwise = `Cannot reach ${where}: ${said || code}. Is it running, and is DATABASE_URL right?`;
  return new Error(advice[code] ?? otherwise, { cause });
}

export function codeOf(error: unknown): string {
  // A name with several addresses fails with one error for each.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error && "code" in first && typeof first.code === "string"
    ? first.code
    : "";
}
