import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Auditor } from "../../../src/billing/audit/auditor.ts";
import { billingPartitions } from "../../../src/billing/jobs.ts";
import { removeOldMonths } from "../../../src/billing/old-months.ts";
import { endedHoldKeptDays } from "../../../src/core/limits.ts";
import { newId } from "../../../src/core/uuid.ts";
import { ensurePartitions } from "../../../src/db/partition.ts";
import { callRow } from "./calls/call-row.ts";
import { type Billing, openBilling } from "./harness.ts";

let billing: Billing;
let auditor: Auditor;
beforeEach(async () => {
  billing = await openBilling();
  const { pool } = billing;
  auditor = new Auditor(pool);
  for (const now of [old, new Date()]) {
    await ensurePartitions(pool, billingPartitions, { now, monthsAhead: 0 });
  }
});
afterEach(() => billing.close());

/** The middle of a month that is old enough, half a year ago. */
const thisMonth = new Date();
const old = new Date(Date.UTC(thisMonth.getUTCFullYear(), thisMonth.getUTCMonth() - 6, 15));
const [steps, released, calls] = ["hold_step", "released_hold", "call"].map(
  (table) => `${table}_${old.toISOString().slice(0, 7).replace("-", "_")}`,
);

function idOf(date: Date): string {
  const hex = date.getTime().toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}${newId().slice(13)}`;
}

async function call(accountId: string, keyId: string, date: Date): Promise<string> {
  const id = idOf(date);
  await billing.send({ accountId, holds: [{ id, amountNanos: 60n, keyId }] });
  await billing.send({ accountId, extends: [{ id, amountNanos: 70n }] });
  const record = callRow(id, accountId, { held: "70", key_id: keyId });
  await billing.apply({ accountId, settles: [{ id, costNanos: 25n, record }] });
  return id;
}

/** A call that fails: its hold grows, and is released. */
async function freeCall(accountId: string, keyId: string, date: Date): Promise<string> {
  const id = idOf(date);
  await billing.send({ accountId, holds: [{ id, amountNanos: 60n, keyId }] });
  await billing.send({ accountId, extends: [{ id, amountNanos: 70n }] });
  const record = callRow(id, accountId, { held: "70", cost: "0", key_id: keyId });
  await billing.apply({ accountId, settles: [{ id, costNanos: 0n, record }] });
  return id;
}

const byId = (one: { readonly id: string }, other: { readonly id: string }): number =>
  one.id < other.id ? -1 : 1;

const find = async (names: readonly (string | undefined)[]) =>
  (
    await billing.pool.query<{ relname: string }>(
      "select relname from pg_class where relname = any($1) order by 1",
      [names],
    )
  ).rows.map(({ relname }) => relname);

/**
 * Removes these months. On a busy machine a table may stay locked for longer than a removal waits:
 * it tries again.
 */
async function removeInTime(
  names: readonly (string | undefined)[],
  options: Parameters<typeof removeOldMonths>[0],
): Promise<void> {
  const removed: string[] = [];
  await vi.waitFor(
    async () => {
      removed.push(...(await removeOldMonths(options)));
      expect(removed).toEqual(names);
    },
    { timeout: 30_000 },
  );
}

test("the steps of holds are removed by month, entries and holds stay, and every audit stays right", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  const id = await call(account, keyId, old);
  await call(account, keyId, new Date());
  expect(await removeOldMonths({ auditor })).toEqual([]);
  expect(await auditor.run()).toMatchObject({ breaches: [] });
  await removeInTime([steps, released], { auditor });
  expect(await find([steps, released, calls])).toEqual([calls]);
  expect(await billing.count("ledger_entry", `txn_id = '${id}'`)).toBe(2);
  expect(await billing.count("hold", `id = '${id}' and amount = 70 and steps = 1`)).toBe(1);
  await call(account, keyId, new Date());
  expect(await auditor.runFull()).toMatchObject({ breaches: [], isComplete: true });
  expect(await billing.balance(account)).toEqual({ available: 925n, held: 0n });
});

test("the holds of calls that cost nothing are removed by month, those of charges stay, and every audit stays right", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  const charged = await call(account, keyId, old);
  const free = await freeCall(account, keyId, old);
  const kept = await freeCall(account, keyId, new Date());
  const holds = async (): Promise<readonly unknown[]> =>
    (await billing.pool.query("select id, state, steps, settled from hold order by id")).rows;
  const row = (id: string, state: number, settled: string) => ({ id, state, steps: 1, settled });
  const left = [row(charged, 2, "25"), row(kept, 3, "0")].sort(byId);
  expect(await holds()).toEqual([...left, row(free, 3, "0")].sort(byId));
  expect(await auditor.run()).toMatchObject({ breaches: [] });
  await removeInTime([steps, released], { auditor });
  expect(await holds()).toEqual(left);
  expect(await auditor.runFull()).toMatchObject({ breaches: [], isComplete: true });
  expect(await billing.balance(account)).toEqual({ available: 975n, held: 0n });
});

test("a settlement that comes after its released hold was removed charges nothing", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  const id = await freeCall(account, keyId, old);
  await auditor.run();
  await removeInTime([steps, released], { auditor });
  const late = await billing.send({ accountId: account, settles: [[id, 40n, { held: "70" }]] });
  expect(late.settles).toEqual(["unknown"]);
  expect(await billing.balance(account)).toEqual({ available: 1_000n, held: 0n });
  expect(await auditor.runFull()).toMatchObject({ breaches: [] });
});

test("a released hold that costs the platform something later becomes a charge, and stays", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  const id = await freeCall(account, keyId, old);
  const vendor = "select verdict from ledger_vendor_late($1, $2, 5)";
  expect((await billing.pool.query(vendor, [account, id])).rows).toEqual([{ verdict: "booked" }]);
  expect((await billing.pool.query(vendor, [account, id])).rows).toEqual([{ verdict: "replayed" }]);
  const entry = `txn_id = '${id}' and account = 8 and amount = 5`;
  expect(await billing.count("ledger_entry", entry)).toBe(1);
  expect(await auditor.run()).toMatchObject({ breaches: [] });
  await removeInTime([steps, released], { auditor });
  expect(await billing.count("hold", `id = '${id}' and state = 3`)).toBe(1);
  expect(await billing.count("call", `id = '${id}' and vendor_cost = 5`)).toBe(1);
  expect(await auditor.runFull()).toMatchObject({ breaches: [] });
});

test("a released hold of a month that was not removed yet is missed by an audit (I7)", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  const id = await freeCall(account, keyId, old);
  await billing.pool.query("delete from released_hold where id = $1", [id]);
  const report = await auditor.runFull();
  expect(report?.breaches.map(({ rule }) => rule)).toContain("I7");
});

test("a month stays for a month after its end, while one of its holds is open, and until it was audited", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  await call(account, keyId, old);
  await auditor.run();
  const end = Date.UTC(old.getUTCFullYear(), old.getUTCMonth() + 1);
  const dayMs = 86_400_000;
  const now = (days: number): Date => new Date(end + days * dayMs - 1);
  expect(await removeOldMonths({ auditor, now: now(endedHoldKeptDays) })).toEqual([]);
  const open = idOf(old);
  await billing.send({ accountId: account, holds: [{ id: open, amountNanos: 60n, keyId }] });
  expect(await removeOldMonths({ auditor })).toEqual([]);
  await billing.send({ accountId: account, settles: [[open, 0n]] });
  const oldEnough = { auditor, now: now(endedHoldKeptDays + 1) };
  await removeInTime([steps], oldEnough);
  await auditor.run();
  await removeInTime([released], oldEnough);
});

test("a settlement that comes after the steps of its hold were removed changes nothing (R-MON-2)", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  const id = await call(account, keyId, old);
  await auditor.run();
  await removeInTime([steps, released], { auditor });
  const before = await billing.balance(account);
  const late = await billing.send({ accountId: account, settles: [[id, 40n, { held: "70" }]] });
  expect(late.settles).toEqual(["already"]);
  expect(await billing.balance(account)).toEqual(before);
  const { rows } = await billing.pool.query("select cost, held from call where id = $1", [id]);
  expect(rows).toEqual([{ cost: "25", held: "70" }]);
  const vendor = "select verdict from ledger_vendor_late($1, $2, 5)";
  expect((await billing.pool.query(vendor, [account, id])).rows).toEqual([{ verdict: "booked" }]);
  expect(await auditor.runFull()).toMatchObject({ breaches: [] });
});

test("calls are kept indefinitely, or as long as the configuration says, and their sums stay", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  await call(account, keyId, old);
  await auditor.run();
  await removeInTime([steps, released], { auditor });
  expect(await removeOldMonths({ auditor, callDays: 365 })).toEqual([]);
  await removeInTime([calls], { auditor, callDays: 90 });
  expect(await billing.count("usage_hour", "calls = 1 and cost = 25")).toBe(1);
  expect(await billing.count("call")).toBe(0);
  expect(await auditor.runFull()).toMatchObject({ breaches: [] });
});

test("a table in use is left for the next time, and delays no statement for long", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  await call(account, keyId, old);
  await auditor.run();
  const client = await billing.pool.connect();
  await client.query("begin; lock table hold_step in row exclusive mode");
  expect(await removeOldMonths({ auditor })).toEqual([]);
  await client.query("rollback");
  client.release();
  await removeInTime([steps, released], { auditor });
});

test("a process whose clock is 400 days ahead removes no month that is young by the database's clock", async () => {
  const [account, keyId] = [await billing.account(1_000n), newId()];
  await call(account, keyId, old);
  await auditor.run();
  await removeInTime([steps, released], { auditor });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 400 * 86_400_000 });
  onTestFinished(() => void vi.useRealTimers());
  expect(await removeOldMonths({ auditor, callDays: 365 })).toEqual([]);
  expect(await billing.count("call")).toBe(1);
});
