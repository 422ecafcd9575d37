import type { Pool } from "pg";
import { expect, test, vi } from "vitest";
import { createStateJobs } from "../../../../src/responses/stored/state.ts";
import { createReasoningCarry } from "../../../../src/responses/stored/reasoning.ts";
import { createResponseStore } from "../../../../src/responses/stored/response-store.ts";
import { expire, newAccount, response, useDatabase } from "./harness.ts";

const fixture = useDatabase();

async function rowsOf(table: string, accountId: string): Promise<number> {
  const text = `select count(*)::int as count from ${table} where account_id = $1`;
  const { rows } = await fixture.pool.query<{ count: number }>(text, [accountId]);
  return rows[0]?.count ?? -1;
}

test("expired state is deleted, and no other", async () => {
  const { pool } = fixture;
  const [old, fresh] = [newAccount(), newAccount()];
  const store = createResponseStore({ pool });
  const reasoning = createReasoningCarry({ pool, key: Buffer.alloc(32) });
  for (const account of [old, fresh]) {
    await store.save(response(account, "a"));
    await reasoning.keep(account, ["a", "b"], "[]");
  }
  // More than one statement deletes.
  await pool.query(
    `insert into stored_response (account_id, id, model, vendor, item_ids, bytes, expires_at)
     select $1, 'resp_' || n, 'm', 'v', '{}', 0, now() from generate_series(1, 2500) as n`,
    [old],
  );
  await expire(pool, "stored_response", old);
  await expire(pool, "kept_reasoning", old);
  const jobs = createStateJobs({ pool, store });
  expect(await jobs.expire()).toBe(2_503);
  for (const table of ["stored_response", "kept_reasoning"]) {
    expect(await rowsOf(table, old)).toBe(0);
    expect(await rowsOf(table, fresh)).toBeGreaterThan(0);
  }
});

test("the periodic jobs delete expired state and keep accounts within their limit", async () => {
  const { pool } = fixture;
  const [old, account] = [newAccount(), newAccount()];
  const store = createResponseStore({ pool, accountBytesMax: 100_000 });
  await store.save(response(old, "a"));
  await expire(pool, "stored_response", old);
  for (const size of [6_000, 99_000]) {
    await store.save(response(account, "a", { input: "x".repeat(size) }));
  }
  const jobs = createStateJobs({ pool, store, everyMs: 5 });
  jobs.start();
  await vi.waitFor(async () => {
    expect(await rowsOf("stored_response", old)).toBe(0);
    expect(await rowsOf("stored_response", account)).toBe(1);
  });
  await jobs.stop();
});

test("a failed run is reported, and tried again", async () => {
  const warn = vi.fn();
  const pool = { query: vi.fn().mockRejectedValue(new Error("away")) } as unknown as Pool;
  const jobs = createStateJobs({ pool, store: createResponseStore({ pool }), everyMs: 1, warn });
  jobs.start();
  await vi.waitFor(() => expect(warn.mock.calls.length).toBeGreaterThan(3));
  await jobs.stop();
});
