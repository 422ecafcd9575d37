/** Databases on the test run's server. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, escapeIdentifier } from "pg";

/** What the global setup tells the tests. */
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

/** Makes a database with a name of its own, as a copy of `template`. Returns the name. */
export async function createDatabase(adminUrl: string, template: string): Promise<string> {
  const name = `uas_test_${randomBytes(6).toString("hex")}`;
  // Whole copies of files: quicker than logging each page where the template is small.
  await run(adminUrl, `create database ${name} template ${escapeIdentifier(template)}`);
  return name;
}

/** How long connections that are being closed may take to be gone, in milliseconds. */
const closeTimeoutMs = 2_000;

/**
 * Drops a database.
 *
 * @throws where somebody was still connected: every resource a test opens is closed, or the test fails.
 */
export async function dropDatabase(adminUrl: string, name: string): Promise<void> {
  const client = new Client({ connectionString: adminUrl });
  await client.connect();
  try {
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
  } finally {
    await client.end();
  }
}

/** What the clients of a database did last. */
async function connections(client: Client, name: string): Promise<string[]> {
  const { rows } = await client.query<{ query: string }>(
    "select query from pg_stat_activity where datname = $1 and backend_type = 'client backend'",
    [name],
  );
  return rows.map(({ query }) => query || "(no query yet)");
}

async function run(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
