/**
 * Operations of the ledger that are there already when they come: batches are sent without asking
 * first.
 */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { createLedger, type LedgerWriter } from "../../../../src/billing/ledger/ledger-writer.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling } from "../harness.ts";

let billing: Billing;
let ledger: LedgerWriter;
const warnings: string[] = [];

beforeAll(async () => {
  billing = await openBilling();
  const warn = (message: string): void => void warnings.push(message);
  ledger = createLedger({ url: billing.url, holdWaitMs, warn });
});

beforeEach(() => {
  warnings.length = 0;
});

afterAll(async () => {
  await ledger.close();
  await billing.close();
});

test("R-MON-2: a repeated hold is admitted again and held once, and the other holds of its batch are placed", async () => {
  const accountId = await billing.account(1_000n);
  const keyId = newId();
  const [first, second, third] = [newId(), newId(), newId()];
  const hold = (id: string) => ledger.hold({ id, accountId, amountNanos: 100n, keyId });
  expect(await hold(first)).toEqual({ admitted: true });
  const admitted = { admitted: true };
  expect(await Promise.all([hold(second), hold(first), hold(third)])).toEqual([
    admitted,
    admitted,
    admitted,
  ]);
  expect(await billing.balance(accountId)).toEqual({ available: 700n, held: 300n });
  await billing.expectClean();
});

test("R-MON-2: a repetition of an ended hold is refused as closed, and the other holds of its batch are placed", async () => {
  const accountId = await billing.account(1_000n);
  const [ended, fresh] = [newId(), newId()];
  const hold = (id: string) => ledger.hold({ id, accountId, amountNanos: 100n, keyId: "" });
  await hold(ended);
  await ledger.settle({ id: ended, accountId, costNanos: 40n, record: record(ended, accountId) });
  expect(await Promise.all([hold(ended), hold(fresh)])).toMatchObject([
    { admitted: false, closed: true },
    { admitted: true },
  ]);
  expect(await billing.balance(accountId)).toEqual({ available: 860n, held: 100n });
});

test("R-MON-2: a statement that the database always refuses is sent until it passes, and two log lines report it", async () => {
  const accountId = await billing.account(1_000n);
  const id = newId();
  await ledger.hold({ id, accountId, amountNanos: 100n, keyId: "" });
  // As after a restore without grants.
  await billing.pool.query(`
    create function refuse() returns trigger language plpgsql as
      $$ begin raise insufficient_privilege using message = 'no right to open_hold'; end $$;
    create trigger refused before delete on open_hold for each statement execute function refuse()`);
  const sentBefore = ledger.stats().resends;
  const settled = ledger.settle({ id, accountId, costNanos: 40n, record: record(id, accountId) });
  await vi.waitUntil(() => ledger.stats().resends > sentBefore + 3, { timeout: 60_000 });
  expect(ledger.blockedBy).toMatch(/^the database refuses statements of the ledger/);
  expect(warnings).toEqual([expect.stringMatching(/^the database refuses a ledger statement: /)]);

  await billing.pool.query("drop trigger refused on open_hold; drop function refuse()");
  await settled;
  expect(ledger.blockedBy).toBeUndefined();
  expect(warnings.slice(1)).toEqual(["the database accepts the ledger's statements again"]);
  expect(await billing.balance(accountId)).toEqual({ available: 960n, held: 0n });
  await billing.expectClean();
});

test("R-MON-2: a settlement whose record exists already is charged, and the record stays unchanged", async () => {
  const accountId = await billing.account(1_000n);
  const [recorded, other] = [newId(), newId()];
  for (const id of [recorded, other]) {
    await ledger.hold({ id, accountId, amountNanos: 100n, keyId: "" });
  }
  const told = { model: "told before", cost: "0", held: "0" };
  ledger.record(callRow(recorded, accountId, told));
  await ledger.flush();
  const settle = (id: string) =>
    ledger.settle({ id, accountId, costNanos: 40n, record: record(id, accountId) });
  await Promise.all([settle(recorded), settle(other)]);
  expect(await billing.balance(accountId)).toEqual({ available: 920n, held: 0n });
  expect(await billing.count("call", `id = '${recorded}' and model = 'told before'`)).toBe(1);
  expect(await billing.count("call", `id = '${other}' and cost = 40`)).toBe(1);
  expect(await billing.count("usage_hour", `account_id = '${accountId}'`)).toBe(2);
  expect(warnings).toEqual([]);
  expect(ledger.stats().refusedSettles).toBe(0);
});

function record(id: string, accountId: string) {
  return callRow(id, accountId, { cost: "40", held: "100" });
}
