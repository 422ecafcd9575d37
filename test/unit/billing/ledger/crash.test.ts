import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createBillingJobs } from "../../../../src/billing/jobs.ts";
import { createLedger, type LedgerWriter } from "../../../../src/billing/ledger/ledger-writer.ts";
import { renewStatement } from "../../../../src/billing/ledger/lease-renewal.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling, topUp } from "../harness.ts";
import { newId } from "../../../../src/core/uuid.ts";

describe("the ledger under concurrency and crashes", () => {
  let billing: Billing;
  beforeAll(async () => void (billing = await openBilling()));
  afterEach(() => billing.expectClean());
  afterAll(() => billing.close());

  test("R-MON-3: 200 callers on 2 nodes never overdraw a nearly empty account, and strand nothing", async () => {
    // The exhaustion of facts: each call holds 20 and costs 13; what is left at the end is less
    // than a hold.
    const account = await billing.account(2_000n);
    const ledgers = [0, 1].map(() =>
      createLedger({ url: billing.url, connections: 2, holdWaitMs }),
    );
    const watch = setInterval(() => void overdrawn(), 5);
    let lowest = 0n;
    const overdrawn = async (): Promise<void> => {
      const { available, held } = await billing.balance(account);
      if (available < lowest || held < 0n) lowest = available;
    };
    let settled = 0;
    const caller = async (ledger: LedgerWriter): Promise<void> => {
      for (;;) {
        const id = newId();
        const verdict = await ledger.hold({ id, accountId: account, amountNanos: 20n, keyId: "" });
        if (!verdict.admitted) {
          expect(verdict.availableNanos).toBeLessThan(20n);
          // Others still hold: their remainders may make room again.
          if ((await billing.balance(account)).held === 0n) return;
          continue;
        }
        const record = callRow(id, account, { cost: "13", held: "20" });
        await ledger.settle({ id, accountId: account, costNanos: 13n, record });
        settled++;
      }
    };
    await Promise.all(
      Array.from({ length: 200 }, (_, n) => caller(ledgers[n % 2] as LedgerWriter)),
    );
    clearInterval(watch);
    for (const ledger of ledgers) await ledger.close();
    // 153 × 13 = 1989; 11 are left, less than one hold.
    expect({ settled, lowest }).toEqual({ settled: 153, lowest: 0n });
    expect(await billing.balance(account)).toEqual({ available: 11n, held: 0n });
    expect((await billing.sums())[6]).toBeUndefined();
  });

  test("R-MON-2: backends killed in mid-batch lose nothing and double nothing", async () => {
    const account = await billing.account(1_000_000_000n);
    const ledger = createLedger({ url: billing.url, connections: 2, holdWaitMs });
    const settled = new Set<string>();
    const state = { isRunning: true };
    const caller = async (): Promise<void> => {
      while (state.isRunning) {
        const id = newId();
        const verdict = await ledger.hold({ id, accountId: account, amountNanos: 20n, keyId: "" });
        expect(verdict).toEqual({ admitted: true });
        const record = callRow(id, account, { cost: "13", held: "20" });
        await ledger.settle({ id, accountId: account, costNanos: 13n, record });
        settled.add(id);
      }
    };
    const callers = Array.from({ length: 50 }, caller);
    // Some hit a connection between two batches: only a batch that is sent again counts.
    while (ledger.stats().resends < 10) {
      await billing.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name = 'uas-ledger' and state = 'active'`,
      );
    }
    state.isRunning = false;
    await Promise.all(callers);
    await ledger.flush();
    expect(ledger.stats()).toMatchObject({ pendingSettles: 0, openHolds: 0 });
    await ledger.close();
    const spent = 13n * BigInt(settled.size);
    expect(await billing.balance(account)).toEqual({ available: 1_000_000_000n - spent, held: 0n });
    expect(await billing.count("call", `account_id = '${account}'`)).toBe(settled.size);
  });

  test("R-MON-7: the holds of a dead process are freed after their time, by any node", async () => {
    const account = await billing.account(1_000n);
    // It dies without close: its holds are neither settled nor renewed.
    const dead = createLedger({ url: billing.url, connections: 1, holdTtlMs: 1, holdWaitMs });
    const ids = Array.from({ length: 20 }, () => newId());
    await Promise.all(
      ids.map((id) => dead.hold({ id, accountId: account, amountNanos: 50n, keyId: "" })),
    );
    expect(await billing.balance(account)).toEqual({ available: 0n, held: 1_000n });
    await billing.age(ids, 1);
    const nodes = [0, 1, 2].map(() => createBillingJobs({ pool: billing.pool }));
    const freed = await Promise.all(nodes.map((node) => node.recoverHolds()));
    expect(freed.reduce((sum, count) => sum + count, 0)).toBe(20);
    expect(await billing.balance(account)).toEqual({ available: 1_000n, held: 0n });
    await dead.close();
  });

  test("recoveries, renewals, bookings and batches of the same accounts never deadlock", async () => {
    const accounts = await Promise.all(Array.from({ length: 4 }, () => billing.account(10_000n)));
    const ledgers = [0, 1].map(() =>
      createLedger({ url: billing.url, connections: 2, holdTtlMs: 1, holdWaitMs }),
    );
    const nodes = [0, 1].map(() => createBillingJobs({ pool: billing.pool }));
    const before = await deadlocks();
    const calls = accounts.flatMap((account) =>
      ledgers.flatMap((ledger) =>
        Array.from({ length: 40 }, async () => {
          const id = newId();
          await ledger.hold({ id, accountId: account, amountNanos: 5n, keyId: "" });
          const record = callRow(id, account, { cost: "4", held: "5" });
          await ledger.settle({ id, accountId: account, costNanos: 4n, record });
        }),
      ),
    );
    const state = { isRunning: true };
    const others = nodes.map(async (node) => {
      for (let topUps = 0n; ; topUps++) {
        await node.recoverHolds();
        const { rows } = await billing.pool.query<{ id: string }>("select id from open_hold");
        await billing.pool.query(renewStatement.text, [rows.map((row) => row.id), 1]);
        for (const account of accounts) await topUp(billing.pool, account, 1n);
        if (!state.isRunning) return topUps + 1n;
      }
    });
    await Promise.all(calls);
    state.isRunning = false;
    const added = (await Promise.all(others)).reduce((sum, topUps) => sum + topUps);
    for (const ledger of ledgers) await ledger.close();
    expect(await deadlocks()).toBe(before);
    for (const account of accounts) {
      expect(await billing.balance(account)).toEqual({ available: 9_680n + added, held: 0n });
    }
  });

  async function deadlocks(): Promise<string> {
    const text = "select deadlocks from pg_stat_database where datname = current_database()";
    return (await billing.pool.query<{ deadlocks: string }>(text)).rows[0]?.deadlocks ?? "";
  }
});
