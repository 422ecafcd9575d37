import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createLedger, type LedgerWriter } from "../../../../src/billing/ledger/ledger-writer.ts";
import { createBillingJobs } from "../../../../src/billing/jobs.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling } from "../harness.ts";
import { newId } from "../../../../src/core/uuid.ts";

describe("the ledger", () => {
  let billing: Billing;
  let proxy: FaultProxy;
  const ledgers: LedgerWriter[] = [];
  beforeAll(async () => {
    billing = await openBilling();
    proxy = await startFaultProxy(billing.url);
  });
  afterEach(async () => {
    proxy.refuse(false);
    proxy.resume();
    for (const ledger of ledgers.splice(0)) await ledger.close();
    await billing.expectClean();
  });
  afterAll(async () => {
    await proxy.close();
    await billing.close();
  });

  const open = (
    url = billing.url,
    rest: { holdTtlMs?: number; holdWaitMs?: number } = {},
  ): LedgerWriter => {
    const ledger = createLedger({ url, connections: 2, ...rest });
    ledgers.push(ledger);
    return ledger;
  };
  const ask = (accountId: string, amountNanos: bigint) => ({
    id: newId(),
    accountId,
    amountNanos,
    keyId: "",
  });
  const settle = (ledger: LedgerWriter, hold: ReturnType<typeof ask>, costNanos: bigint) => {
    const { id, accountId, amountNanos } = hold;
    const record = callRow(id, accountId, { cost: `${costNanos}`, held: `${amountNanos}` });
    return ledger.settle({ id, accountId, costNanos, record });
  };
  const statusOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => "no error",
      (error: unknown) => (error instanceof GatewayError ? error.code : error),
    );

  test("R-MON-2: holds, settles, and writes the record with the money", async () => {
    const ledger = open(billing.url, { holdWaitMs });
    const account = await billing.account(100n);
    const hold = ask(account, 60n);
    expect(await ledger.hold(hold)).toEqual({ admitted: true });
    expect(ledger.stats().openHolds).toBe(1);
    expect(await ledger.hold(ask(account, 50n))).toEqual({ admitted: false, availableNanos: 40n });
    await settle(ledger, hold, 10n);
    expect(await billing.balance(account)).toEqual({ available: 90n, held: 0n });
    expect(await billing.count("call", `id = '${hold.id}' and cost = 10`)).toBe(1);
    expect(ledger.stats()).toMatchObject({ openHolds: 0, pendingSettles: 0, pendingHolds: 0 });
  });

  test("R-MON-5: a hold grows as far as the balance allows, and reports its amount", async () => {
    const ledger = open(billing.url, { holdWaitMs });
    const accountId = await billing.account(100n);
    const hold = ask(accountId, 10n);
    const { id } = hold;
    expect(await ledger.hold(hold)).toEqual({ admitted: true });
    const extend = (amountNanos: bigint) => ledger.extend({ id, accountId, amountNanos });
    expect(await extend(40n)).toEqual({ heldNanos: 40n });
    expect(await extend(40n)).toEqual({ heldNanos: 40n });
    expect(await extend(20n)).toEqual({ heldNanos: 40n });
    expect(await extend(120n)).toEqual({ heldNanos: 100n });
    expect(await billing.balance(accountId)).toEqual({ available: 0n, held: 100n });
    await settle(ledger, hold, 70n);
    expect(await extend(120n)).toEqual({ heldNanos: 0n, closed: true });
    expect(await billing.balance(accountId)).toEqual({ available: 30n, held: 0n });
    expect(ledger.stats().pendingExtends).toBe(0);
  });

  test("many concurrent operations of many accounts are all answered", async () => {
    const ledger = open(billing.url, { holdWaitMs });
    const accounts = await Promise.all(Array.from({ length: 10 }, () => billing.account(5_000n)));
    await Promise.all(
      accounts.flatMap((account) =>
        Array.from({ length: 100 }, async () => {
          const hold = ask(account, 50n);
          expect(await ledger.hold(hold)).toEqual({ admitted: true });
          await settle(ledger, hold, 10n);
        }),
      ),
    );
    for (const account of accounts) {
      expect(await billing.balance(account)).toEqual({ available: 4_000n, held: 0n });
    }
  });

  test("R-MON-7: a database that does not answer is a 503 within 1 s, and the hold is released", async () => {
    const ledger = open(proxy.url);
    const account = await billing.account(100n);
    await settle(ledger, await heldBy(ledger, account), 1n);
    proxy.hang();
    const start = performance.now();
    const holds = Array.from({ length: 5 }, () => ledger.hold(ask(account, 10n)));
    const codes = await Promise.all(holds.map(statusOf));
    expect(performance.now() - start).toBeLessThan(1_000);
    expect(codes).toEqual(Array.from({ length: 5 }, () => ErrorCode.SERVICE_UNAVAILABLE));
    proxy.resume();
    await ledger.flush();
    expect(await billing.balance(account)).toEqual({ available: 99n, held: 0n });
    expect(ledger.stats()).toMatchObject({ abandonedHolds: 5, openHolds: 0 });
  });

  test("R-MON-7: an unreachable database is a 503 within 1 s, and settlements are kept until it is back", async () => {
    const ledger = open(proxy.url);
    const account = await billing.account(100n);
    const hold = await heldBy(ledger, account);
    proxy.refuse(true);
    proxy.cut();
    const settled = settle(ledger, hold, 7n);
    expect(await statusOf(ledger.hold(ask(account, 10n)))).toBe(ErrorCode.SERVICE_UNAVAILABLE);
    expect(ledger.stats()).toMatchObject({ pendingSettles: 1, pendingHolds: 0 });
    proxy.refuse(false);
    await settled;
    // The abandoned hold went along with the settlement, and comes back with its verdict.
    await ledger.flush();
    expect(await billing.balance(account)).toEqual({ available: 93n, held: 0n });
    expect(await heldBy(ledger, account)).toBeDefined();
  });

  test("R-MON-2: a committed batch whose answer was lost is re-sent and counts once", async () => {
    const ledger = open(proxy.url);
    const account = await billing.account(100n);
    const first = await heldBy(ledger, account);
    proxy.cutAtNextAnswer();
    await settle(ledger, first, 10n);
    proxy.cutAtNextAnswer();
    const second = await heldBy(ledger, account);
    expect(ledger.stats().resends).toBeGreaterThanOrEqual(2);
    expect(await billing.balance(account)).toEqual({ available: 80n, held: 10n });
    expect(await billing.count("call", `id = '${first.id}'`)).toBe(1);
    await settle(ledger, second, 0n);
  });

  test("a stuck account does not delay the others", async () => {
    const ledger = open();
    const [stuck, other] = [await billing.account(100n), await billing.account(100n)];
    const client = new Client(billing.url);
    await client.connect();
    await client.query("begin");
    await client.query("select from balance where account_id = $1 for update", [stuck]);
    const late = statusOf(ledger.hold(ask(stuck, 10n)));
    await settle(ledger, await heldBy(ledger, other), 5n);
    expect(await late).toBe(ErrorCode.SERVICE_UNAVAILABLE);
    await client.query("commit");
    await client.end();
    await ledger.flush();
    expect(await billing.balance(stuck)).toEqual({ available: 100n, held: 0n });
  });

  test("an operation that the database refuses does not harm its batch", async () => {
    const warn = vi.fn();
    const ledger = createLedger({ url: billing.url, connections: 1, warn });
    ledgers.push(ledger);
    const account = await billing.account(1_000n);
    const bad = statusOf(
      ledger.hold({ id: "not-a-uuid", accountId: account, amountNanos: 1n, keyId: "" }),
    );
    const holds = await Promise.all(Array.from({ length: 7 }, () => heldBy(ledger, account)));
    expect(await bad).toBe(ErrorCode.INTERNAL_ERROR);
    const [first, ...others] = holds;
    if (!first) throw new Error("no hold");
    const record = { ...callRow(first.id, account, { held: "10" }), duration_ms: 1.5 };
    const { id } = first;
    await Promise.all([
      ledger.settle({ id, accountId: account, costNanos: 3n, record }),
      ...others.map((hold) => settle(ledger, hold, 3n)),
    ]);
    // The money is settled, only the details of the record are lost, and the loss was reported.
    expect(await billing.balance(account)).toEqual({ available: 979n, held: 0n });
    const bare = `id = '${id}' and cost = 3 and held = 10 and model = '' and input_tokens = 0`;
    expect(await billing.count("call", bare)).toBe(1);
    expect(ledger.stats()).toMatchObject({ refusedSettles: 1, pendingSettles: 0 });
    expect(warn).toHaveBeenCalled();
  });

  test("texts of clients that PostgreSQL cannot store do not cost the record", async () => {
    const ledger = open(billing.url, { holdWaitMs });
    const account = await billing.account(100n);
    const hold = await heldBy(ledger, account);
    const { id } = hold;
    const texts = { model: `a\0b\ud800${"x".repeat(300)}`, request_id: "\u0007ok" };
    const record = callRow(id, account, { held: "10", ...texts });
    await ledger.settle({ id, accountId: account, costNanos: 1n, record });
    expect(await billing.count("call", `id = '${id}' and length(model) = 256`)).toBe(1);
  });

  test("R-MON-7: a running call's hold is renewed, and the holds of a dead process are recovered", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "performance"] });
    const ledger = open(billing.url, { holdTtlMs: 3_600_000, holdWaitMs });
    const jobs = createBillingJobs({ pool: billing.pool });
    const account = await billing.account(100n);
    const live = ask(account, 10n);
    const dead = ask(account, 20n);
    const waiting = ledger.hold(live);
    await billing.apply({ accountId: account, holds: [dead], ttlMs: 0 });
    expect(await waiting).toEqual({ admitted: true });
    await billing.age([live.id], 1);
    vi.advanceTimersByTime(80_000);
    await ledger.flush();
    vi.useRealTimers();
    expect(await jobs.recoverHolds()).toBe(1);
    expect(await billing.balance(account)).toEqual({ available: 90n, held: 10n });
    await settle(ledger, live, 10n);
  });

  test("R-MON-10: refused calls are recorded, without money", async () => {
    const ledger = open(billing.url, { holdWaitMs });
    const account = await billing.account();
    const ids = Array.from({ length: 1_200 }, () => newId());
    for (const id of ids)
      ledger.record(callRow(id, account, { status: 402, cost: "5", held: "5" }));
    expect(ledger.stats().pendingRecords).toBe(1_200);
    await ledger.flush();
    expect(await billing.count("call", `account_id = '${account}' and cost = 0 and held = 0`)).toBe(
      1_200,
    );
    // Twice, or broken: the others are written.
    const fresh = newId();
    ledger.record(callRow(ids[0] ?? "", account));
    ledger.record({ ...callRow(newId(), account), duration_ms: 0.5 });
    ledger.record(callRow(fresh, account));
    await ledger.flush();
    expect(await billing.count("call", `account_id = '${account}'`)).toBe(1_201);
    expect(ledger.stats()).toMatchObject({ pendingRecords: 0, droppedRecords: 1 });
  });

  test("R-MON-10: records of refused calls are bounded while the database is unreachable", async () => {
    const ledger = open("postgres://127.0.0.1:1/none");
    const row = callRow(newId(), newId(), { status: 402 });
    for (let index = 0; index < 10_003; index++) ledger.record(row);
    expect(ledger.stats()).toMatchObject({ pendingRecords: 10_000, droppedRecords: 3 });
    expect((await ledger.close(10)).pendingRecords).toBe(10_000);
    ledgers.splice(0);
  });

  test("close makes pending operations durable, and refuses new holds", async () => {
    const ledger = open();
    const account = await billing.account(1_000n);
    const holds = await Promise.all(Array.from({ length: 20 }, () => heldBy(ledger, account)));
    const settled = Promise.all(holds.map((hold) => settle(ledger, hold, 2n)));
    ledger.record(callRow(newId(), account));
    const left = await ledger.close();
    await settled;
    expect(left).toMatchObject({ pendingSettles: 0, pendingRecords: 0, openHolds: 0 });
    expect(await statusOf(ledger.hold(ask(account, 1n)))).toBe(ErrorCode.SERVICE_UNAVAILABLE);
    expect(await billing.balance(account)).toEqual({ available: 960n, held: 0n });
  });

  /** Holds 10 and returns what to settle. */
  async function heldBy(ledger: LedgerWriter, accountId: string): Promise<ReturnType<typeof ask>> {
    const hold = ask(accountId, 10n);
    expect(await ledger.hold(hold)).toEqual({ admitted: true });
    return hold;
  }
});
