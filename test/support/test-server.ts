/** Databases on the test run's server. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, escapeIdentifier } from "pg";

/** Data that the global setup passes to the tests. */
export interface TestServer {
  /** A connection for making databases. */
  readonly adminUrl: string;
  /** The name of the migrated database to copy. */
  readonly template: string;
}

/** The same server, another database. */
export function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

/** Creates a database with a unique name as a copy of `template`. Returns the name. */
export async function createDatabase(adminUrl: string, template: string): Promise<string> {
  const name = `uas_test_${randomBytes(6).toString("hex")}`;
  await withClient(adminUrl, async (client) => {
    await client.query(cloneFiles);
    const { rows } = await client.query<{ fsync: string }>("show fsync");
    // Copied files take a fifth of the CPU of logged pages, and two checkpoints: quick if nothing
    // waits for a disk.
    const strategy = rows[0]?.fsync === "off" ? "file_copy" : "wal_log";
    const copied = `template ${escapeIdentifier(template)} strategy ${strategy}`;
    await client.query(`create database ${name} ${copied}`);
  });
  return name;
}

/** Lets the system copy files within itself, from PostgreSQL 18 on and where it can. */
const cloneFiles = `
  select set_config(name, 'clone', false) from pg_settings
  where name = 'file_copy_method' and 'clone' = any(enumvals)`;

/** Maximum time for closing connections to disappear. */
const closeTimeoutMs = 10_000;

/**
 * Drops a database.
 *
 * @throws if connections are still open: every resource that a test opens is closed, or the test
 * fails.
 */
export async function dropDatabase(adminUrl: string, name: string): Promise<void> {
  await withClient(adminUrl, async (client) => {
    const deadline = Date.now() + closeTimeoutMs;
    let open = await connections(client, name);
    // pg's pool.end() resolves before the server has seen the last goodbye.
    while (open.length > 0 && Date.now() < deadline) {
      await sleep(2);
      open = await connections(client, name);
    }
    await client.query(`drop database if exists ${escapeIdentifier(name)} with (force)`);
    if (open.length > 0) {
      throw new Error(`still connected to the test's database: ${open.join("; ")}`);
    }
  });
}

/** Returns the last statement of each of a database's clients. */
async function connections(client: Client, name: string): Promise<string[]> {
  const { rows } = await client.query<{ query: string }>(
    "select query from pg_stat_activity where datname = $1 and backend_type = 'client backend'",
    [name],
  );
  return rows.map(({ query }) => query || "(no query yet)");
}

async function withClient(url: string, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
