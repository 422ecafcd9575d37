/** Databases on the test run's server. */
import { randomBytes } from "node:crypto";
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

/** Drops a database, whoever is still connected. */
export async function dropDatabase(adminUrl: string, name: string): Promise<void> {
  await run(adminUrl, `drop database if exists ${escapeIdentifier(name)} with (force)`);
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
