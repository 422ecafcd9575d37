import { randomUUIDv7 } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createBillingJobs } from "../../src/billing/jobs.ts";
import { callRow } from "./call-row.ts";
import { type Billing, openBilling } from "./harness.ts";

let billing: Billing;
beforeAll(async () => void (billing = await openBilling()));
afterAll(() => billing.close());

test("R-MON-7: the sweep frees expired holds only, by itself", async () => {
  const account = await billing.account(100n);
  const [expired, live] = [randomUUIDv7(), randomUUIDv7()];
  await billing.apply({ accountId: account, holds: [{ id: live, amountNanos: 10n }] });
  await billing.apply({ accountId: account, holds: [{ id: expired, amountNanos: 20n }], ttlMs: 0 });
  const jobs = createBillingJobs({ pool: billing.pool, sweepMs: 5 });
  jobs.start();
  await vi.waitFor(async () => {
    expect(await billing.balance(account)).toEqual({ available: 90n, held: 10n });
  });
  await jobs.stop();
  expect(await billing.count("hold", `id = '${expired}' and state = 4`)).toBe(1);
  await billing.expectClean();
});

test("the jobs make the partitions, keep their rows guarded, and survive a database that is away", async () => {
  const account = await billing.account(100n);
  const id = randomUUIDv7();
  await billing.apply({ accountId: account, holds: [{ id, amountNanos: 10n }] });
  const jobs = createBillingJobs({ pool: billing.pool });
  jobs.start();
  await jobs.stop();
  const { rows } = await billing.pool.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'ledger_entry'::regclass",
  );
  expect(rows.length).toBeGreaterThanOrEqual(5);
  for (const { name } of rows) {
    await expect(billing.pool.query(`truncate ${name}`)).rejects.toThrow("append-only");
  }
  const record = callRow(id, account, { held: "10" });
  await billing.apply({ accountId: account, settles: [{ id, costNanos: 10n, record }] });
  expect(await billing.count("call", `id = '${id}' and tableoid <> 'call_default'::regclass`)).toBe(
    1,
  );
  const month = `txn_id = '${id}' and tableoid <> 'ledger_entry_default'::regclass`;
  expect(await billing.count("ledger_entry", month)).toBe(2);
  await expect(
    billing.pool.query("update ledger_entry set amount = 1 where txn_id = $1", [id]),
  ).rejects.toThrow("append-only");
  await billing.expectClean();
});

test("a sweep that fails is told, not thrown, and tried again", async () => {
  const warn = vi.fn();
  const query = vi.fn().mockRejectedValue(new Error("away"));
  const pool = { query, connect: query } as unknown as typeof billing.pool;
  const jobs = createBillingJobs({ pool, sweepMs: 1, warn });
  jobs.start();
  await vi.waitFor(() => expect(warn.mock.calls.length).toBeGreaterThan(3));
  await jobs.stop();
});
