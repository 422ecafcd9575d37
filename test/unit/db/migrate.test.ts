import { afterEach, beforeEach, expect, test } from "vitest";
import { Client } from "pg";
import { openDatabase } from "../../../src/db/database.ts";
import { hashOf, migrate, type Migration, migrationLock } from "../../../src/db/migrate.ts";
import { migrations } from "../../../src/db/migrations.ts";
import { createEmptyDatabase, type TestDatabase } from "../../support/database.ts";

let scratch: TestDatabase;
let client: Client;
let lines: string[];

beforeEach(async () => {
  lines = [];
  scratch = await createEmptyDatabase();
  client = new Client(scratch.url);
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await scratch.close();
});

function migration(name: string, text: string, compatibleFrom = "0001-first"): Migration {
  return { name, compatibleFrom, statements: () => [text] };
}

const first = migration("0001-first", "create table customer (id int); create table key (id int)");
const second = migration("0002-second", "alter table customer add column name text");

/** Starts like a program with these migrations. */
function start(...known: readonly Migration[]): Promise<void> {
  const log = { info: (line: string) => lines.push(line), warn: () => {} };
  return migrate(known, { connection: client, address: scratch.url, log });
}

async function rows(text: string): Promise<unknown[]> {
  return (await client.query<Record<string, unknown>>(text)).rows;
}

test("a migration is applied once, and recorded with the hash of its content", async () => {
  await start(first);
  await start(first, second);
  await start(first, second);
  expect(lines).toEqual([
    "migrated the database: 0001-first",
    "migrated the database: 0002-second",
  ]);
  expect(await rows("select name, hash, compatible_from from migration order by name")).toEqual(
    [first, second].map((each) => ({
      name: each.name,
      hash: hashOf(each),
      compatible_from: "0001-first",
    })),
  );
});

test("a migration that fails changes nothing, and is applied by the next start", async () => {
  const broken = migration("0002-second", "create table half (id int); select 1 / 0");
  await expect(start(first, broken)).rejects.toThrow("division by zero");
  expect(await rows("select to_regclass('half') as half")).toEqual([{ half: null }]);
  expect(await rows("select name from migration")).toEqual([{ name: "0001-first" }]);
  await start(first, second);
  expect(await rows("select name from customer")).toEqual([]);
});

test("a database whose baseline differs is refused, with what to do", async () => {
  await start(first);
  const changed = migration("0001-first", "create table customer (id bigint)");
  await expect(start(changed, second)).rejects.toThrow(
    /never released: its migration 0001-first .*Start the version that created it, or give .* empty database/,
  );
  expect(await rows("select name from migration")).toEqual([{ name: "0001-first" }]);
});

test("a database of a version before 0.2.0 is refused, with what to do", async () => {
  await client.query(`
    create table migration (id serial primary key, name text, executed_at timestamptz default now());
    insert into migration (name) values ('0001-baseline')`);
  await expect(openDatabase(scratch.url)).rejects.toThrow(
    /created by a version before 0\.2\.0.*Start the version that created it, or give .* empty database/,
  );
});

test("the program of the previous release starts on a schema that a newer one has only added to", async () => {
  await start(first, second);
  await start(first);
  expect(lines.at(-1)).toBe(
    "a newer version migrated the database (0002-second); this version can use it",
  );
});

test("a program is refused by a schema that no longer has what it uses", async () => {
  await start(first, second, migration("0003-third", "drop table key", "0002-second"));
  await expect(start(first)).rejects.toThrow(/newer version.*0003-third.*restore a backup/);
  await start(first, second);
});

test("a start that finds the database locked by another migration reports it after a time", async () => {
  const other = new Client(scratch.url);
  await other.connect();
  await other.query("select pg_advisory_lock($1)", [migrationLock]);
  const log = { info: () => {}, warn: () => {} };
  const options = { connection: client, address: scratch.url, log, waitMs: 1 };
  await expect(migrate([first], options)).rejects.toThrow(
    "Another process has been migrating the database",
  );
  await other.end();
});

test("processes that start at once on an empty database migrate it once", async () => {
  const log = { info: (line: string) => lines.push(line), warn: () => {} };
  const databases = await Promise.all([1, 2, 3].map(() => openDatabase(scratch.url, { log })));
  for (const database of databases) await database.close();
  expect(lines).toEqual(migrations.map(({ name }) => `migrated the database: ${name}`));
});
