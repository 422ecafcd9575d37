import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findFunctionDrift } from "../../../tools/function-drift.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

const folder = join(import.meta.dirname, "../../../src/db");

let scratch: TestDatabase;
let client: Client;

beforeEach(async () => {
  scratch = await createTestDatabase();
  client = new Client(scratch.url);
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await scratch.close();
});

test("a migrated database has the functions of src/db/sql, each as its file says, and no other (else: npm run migration)", async () => {
  expect(await findFunctionDrift(client)).toEqual([]);
});

test("a function that is changed, missing or without a file is reported, and the database stays as it was", async () => {
  await client.query((await definitionOf("ledger_uuid")).replace("& 15", "& 14"));
  await client.query("drop function ledger_renew");
  await client.query("create function ledger_renew(text) returns text language sql return $1");
  const drift = [
    { name: "ledger_renew", signature: "ledger_renew(uuid[],integer)", kind: "missing" },
    { name: "ledger_uuid", signature: "ledger_uuid()", kind: "changed" },
    { name: "ledger_renew", signature: "ledger_renew(text)", kind: "extra" },
  ];
  expect(await findFunctionDrift(client)).toEqual(drift);
  expect(await findFunctionDrift(client)).toEqual(drift);
});

test("a changed setting of a function and a changed aggregate are reported", async () => {
  await client.query("alter function ledger_admit set enable_seqscan = on");
  await client.query("drop aggregate ledger_sum(bigint)");
  await client.query("create aggregate ledger_sum(bigint) (sfunc = int8mi, stype = bigint)");
  expect(await findFunctionDrift(client)).toEqual([
    expect.objectContaining({ name: "ledger_admit", kind: "changed" }),
    expect.objectContaining({ name: "ledger_sum", kind: "changed" }),
  ]);
});

test("a file of src/db/sql makes the one function that it is named after, and begins by saying what it does", () => {
  for (const file of readdirSync(join(folder, "sql"))) {
    const text = readFileSync(join(folder, "sql", file), "utf8");
    expect(text).toMatch(/^-- \w/);
    const made = [...text.matchAll(/^create or replace (?:function|aggregate) (\w+)\(/gm)];
    expect(made.map(([, name]) => `${name}.sql`)).toEqual([file]);
  }
});

test("the SQL that migrations run is plain ASCII, which databases of every encoding take", () => {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const others = files
    .filter((file) => file.endsWith(".sql"))
    .filter((file) => /[^\n\x20-\x7e]/.test(readFileSync(join(folder, file), "utf8")));
  expect(others).toEqual([]);
});

async function definitionOf(name: string): Promise<string> {
  const { rows } = await client.query<{ text: string }>(
    "select pg_get_functiondef($1::regproc) as text",
    [name],
  );
  return rows[0]?.text ?? "";
}
