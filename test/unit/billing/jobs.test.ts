import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createBillingJobs } from "../../../src/billing/jobs.ts";
import { callRow } from "./calls/call-row.ts";
import { type Billing, openBilling } from "./harness.ts";
import { newId } from "../../../src/core/uuid.ts";

let billing: Billing;
beforeAll(async () => void (billing = await openBilling()));
afterAll(() => billing.close());

test("R-MON-7: the recovery job frees expired holds only", async () => {
  const account = await billing.account(100n);
  const [expired, live] = [newId(), newId()];
  await billing.apply({ accountId: account, holds: [{ id: live, amountNanos: 10n }] });
  await billing.apply({ accountId: account, holds: [{ id: expired, amountNanos: 20n }], ttlMs: 0 });
  const jobs = createBillingJobs({ pool: billing.pool, recoveryMs: 5 });
  jobs.start();
  await vi.waitFor(async () => {
    expect(await billing.balance(account)).toEqual({ available: 90n, held: 10n });
  });
  await jobs.stop();
  expect(await billing.count("hold", `id = '${expired}' and state = 4`)).toBe(1);
  await billing.expectClean();
});

test("the jobs make the partitions, keep their rows guarded, and survive an unreachable database", async () => {
  const own = await openBilling({ hasMonths: false });
  const account = await own.account(100n);
  const id = newId();
  await own.apply({ accountId: account, holds: [{ id, amountNanos: 10n }] });
  const jobs = createBillingJobs({ pool: own.pool });
  jobs.start();
  await jobs.stop();
  const { rows } = await own.pool.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent in ('ledger_charge'::regclass, 'ledger_side'::regclass)",
  );
  expect(rows.length).toBeGreaterThanOrEqual(10);
  for (const { name } of rows) {
    await expect(own.pool.query(`truncate ${name}`)).rejects.toThrow("append-only");
  }
  const record = callRow(id, account, { held: "10" });
  await own.apply({ accountId: account, settles: [{ id, costNanos: 10n, record }] });
  expect(await own.count("call", `id = '${id}' and tableoid <> 'call_default'::regclass`)).toBe(1);
  const month = `id = '${id}' and tableoid <> 'ledger_charge_default'::regclass`;
  expect(await own.count("ledger_charge", month)).toBe(1);
  await expect(
    own.pool.query("update ledger_charge set cost = 1 where id = $1", [id]),
  ).rejects.toThrow("append-only");
  await own.expectClean();
  await own.close();
});

test("R-MON-6: an audit with findings is logged as an error and counted, and one process audits at a time", async () => {
  const account = await billing.account(100n);
  const alarm = vi.fn();
  const jobs = createBillingJobs({ pool: billing.pool, alarm });
  expect([await jobs.audit(), jobs.findings()]).toEqual([[], 0]);
  await billing.pool.query("update balance set available = 99 where account_id = $1", [account]);
  expect(await jobs.audit()).toMatchObject([{ rule: "I2" }]);
  expect(jobs.findings()).toBe(1);
  expect(alarm.mock.calls).toMatchObject([["the ledger is wrong", { findings: 1 }]]);
  await billing.pool.query("update balance set available = 100 where account_id = $1", [account]);
  const both = await Promise.all([jobs.audit(), jobs.audit(), jobs.audit()]);
  expect(both.some((breaches) => breaches?.length === 0)).toBe(true);
  const other = await billing.pool.connect();
  await other.query("begin; select pg_advisory_xact_lock(x) from (values (1969316213)) as t(x)");
  expect(await jobs.audit()).toBeUndefined();
  await other.query("rollback");
  other.release();
});

test("a recovery passes its failpoints in order, and reports an account that falls below its threshold", async () => {
  const account = await billing.account(100n);
  const [id, silent] = [newId(), newId()];
  await billing.send({ accountId: account, holds: [{ id, amountNanos: 10n }] }, silent);
  const told = { id, amountNanos: 0n, checkpointNanos: 6n };
  await billing.send({ accountId: account, extends: [told] });
  await billing.pool.query("update balance set low_below = 95 where account_id = $1", [account]);
  await billing.pool.query("update node set ended = now() where id = $1", [silent]);
  const [failpoint, onLowBalance] = [vi.fn(), vi.fn()];
  expect(
    await createBillingJobs({ pool: billing.pool, failpoint, onLowBalance }).recoverHolds(),
  ).toBe(1);
  expect(failpoint.mock.calls).toEqual([["recovery.found"], ["recovery.begun"], ["recovery.done"]]);
  expect(onLowBalance.mock.calls).toEqual([[account, 94n]]);
  await billing.expectClean();
});

test("a failed recovery is logged, not thrown, and tried again", async () => {
  const warn = vi.fn();
  const query = vi.fn().mockRejectedValue(new Error("away"));
  const pool = { query, connect: query } as unknown as typeof billing.pool;
  const jobs = createBillingJobs({ pool, recoveryMs: 1, warn });
  jobs.start();
  await vi.waitFor(() => expect(warn.mock.calls.length).toBeGreaterThan(3));
  await jobs.stop();
});
