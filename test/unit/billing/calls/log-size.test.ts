/** Questions to a call log that is not small. */
import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";
import { fillLog, type LogQuestion, logQuestions } from "../../../support/log-rows.ts";

const rows = 20_000;

/** Common calls are found by reading few rows, whatever else the log contains. */
const common: Readonly<Record<string, number>> = {
  "newest calls": 300,
  "calls before some day": 300,
  "calls of a key": rows / 2,
  "calls of a common model": rows / 2,
  "failed calls": 300,
  "calls by request id": 300,
  "newest calls of all accounts": 300,
  "a call with its receipt": 300,
  "histogram of 30 days": 3_000,
  "usage of 30 days by day and model": 3_000,
};

let database: TestDatabase;
let pool: Pool;
let questions: LogQuestion[];
beforeAll(async () => {
  database = await createTestDatabase();
  // A single connection, so that its statistics cover all reads.
  pool = new Pool({ connectionString: database.url, max: 1 });
  questions = logQuestions(pool, await fillLog(pool, rows));
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

/** Returns the number of rows of the log, and of entries of its indexes, that were read so far. */
async function readSoFar(): Promise<number> {
  await pool.query("select pg_stat_force_next_flush()");
  const { rows: counted } = await pool.query<{ count: string }>(
    `select (select sum(seq_tup_read) from pg_stat_user_tables where relname ~ '^call_(20|default)')
       + (select sum(idx_tup_read) from pg_stat_user_indexes where relname ~ '^call_(20|default)')
       as count`,
  );
  return Number(counted[0]?.count);
}

test("R-CON-1: every console query finds all matching calls, and common queries scan few rows", async () => {
  const read: Record<string, number> = {};
  const nothing: string[] = [];
  for (const { title, ask } of questions) {
    const before = await readSoFar();
    const { found } = await ask(1);
    read[title] = (await readSoFar()) - before;
    if (found === 0) nothing.push(title);
  }
  // A rare call may need another page on a busy machine.
  expect(nothing).toContain("calls of nobody's model");
  expect(nothing.filter((title) => !/rare|nobody/.test(title))).toEqual([]);
  const over = Object.entries(common).filter(([title, most]) => (read[title] ?? Infinity) > most);
  expect(over.map(([title]) => [title, read[title]])).toEqual([]);
  // The count reads as much: rows without a sum are searched among all.
  expect(read["calls with a rare error"]).toBeGreaterThan(rows / 2);
  expect(read["calls of nobody's model"]).toBe(0);
});
