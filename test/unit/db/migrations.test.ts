import { readdirSync } from "node:fs";
import { join } from "node:path";
import { MikroORM } from "@mikro-orm/postgresql";
import { Pool } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ormOptions } from "../../../src/db/database.ts";
import { hashOf } from "../../../src/db/migrate.ts";
import released from "../../../src/db/migration/released.json" with { type: "json" };
import { migrations } from "../../../src/db/migrations.ts";
import { ensurePartitions, type PartitionedTable } from "../../../src/db/partition.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let scratch: TestDatabase;
let orm: MikroORM;

beforeEach(async () => {
  scratch = await createTestDatabase();
  orm = await MikroORM.init(ormOptions(scratch.url));
});
afterEach(async () => {
  await orm.close(true);
  await scratch.close();
});

function drift(): Promise<string> {
  return orm.schema.getUpdateSchemaSQL({ wrap: false });
}

test("a migrated database has the tables that the entities describe (else: npm run migration)", async () => {
  expect(await drift()).toBe("");
});

test("monthly partitions are no drift, and a missing column is", async () => {
  const pool = new Pool({ connectionString: scratch.url, max: 1 });
  const { rows: tables } = await pool.query<PartitionedTable>(
    `select relname as table, attname as column
     from pg_partitioned_table
     join pg_class on pg_class.oid = partrelid
     join pg_attribute on attrelid = partrelid and attnum = partattrs[0]`,
  );
  expect(tables.length).toBeGreaterThan(0);
  // Other months than those that the database of a test has already.
  const now = new Date("2100-01-15T00:00:00Z");
  expect(await ensurePartitions(pool, tables, { now })).toHaveLength(tables.length * 4);
  expect(await drift()).toBe("");
  await pool.query("alter table balance drop column held");
  expect(await drift()).toContain("held");
  await pool.end();
});

test("every migration file is listed, once, in the order of its name", () => {
  const folder = join(import.meta.dirname, "../../../src/db/migration");
  const names = migrations.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)].toSorted());
  const files = readdirSync(folder).filter((file) => /^\d{4}-[a-z-]+\.ts$/.test(file));
  const starts = new Set(files.map((file) => file.slice(0, 4)));
  expect([...starts].toSorted()).toEqual(names.map((name) => name.slice(0, 4)));
});

test("a released migration has the content of its release (a change is a new one: npm run migration -- <name>)", () => {
  const hashes = migrations.map((migration) => [migration.name, hashOf(migration)]);
  expect(Object.fromEntries(hashes)).toMatchObject(released);
});

test("a program of an earlier migration can use the schema after each migration, by what the migration says", () => {
  for (const { name, compatibleFrom } of migrations) {
    expect(migrations.map((migration) => migration.name)).toContain(compatibleFrom);
    expect(compatibleFrom <= name).toBe(true);
  }
});
