import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createBillingJobs } from "../../../../src/billing/jobs.ts";
import { createLedger } from "../../../../src/billing/ledger/ledger-writer.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, holdWaitMs, openBilling } from "../harness.ts";
import { newId } from "../../../../src/core/uuid.ts";

describe("the ledger of a process", () => {
  let billing: Billing;
  beforeAll(async () => void (billing = await openBilling()));
  afterEach(() => billing.expectClean());
  afterAll(() => billing.close());

  test("a ledger registers its process with the first batch, sends heartbeats, and reports its end", async () => {
    const onLowBalance = vi.fn();
    const ledger = createLedger({
      url: billing.url,
      connections: 1,
      holdWaitMs,
      heartbeatMs: 5,
      onLowBalance,
    });
    const accountId = await billing.account(100n);
    await billing.pool.query("update balance set low_below = 95 where account_id = $1", [
      accountId,
    ]);
    const id = newId();
    await ledger.hold({ id, accountId, amountNanos: 10n, keyId: "" });
    const node = async () => {
      const text = "select ended is not null as ended, seen_time from node where id = $1";
      const values = [ledger.nodeId];
      return (await billing.pool.query<{ ended: boolean; seen_time: Date }>(text, values)).rows[0];
    };
    const first = await node();
    expect(first).toMatchObject({ ended: false });
    expect(await billing.count("hold", `id = '${id}' and node_id = '${ledger.nodeId}'`)).toBe(1);
    await vi.waitFor(async () => {
      expect((await node())?.seen_time.getTime()).toBeGreaterThan(first?.seen_time.getTime() ?? 0);
    });
    const record = callRow(id, accountId, { held: "10" });
    await ledger.settle({ id, accountId, costNanos: 6n, record });
    expect(onLowBalance.mock.calls).toEqual([[accountId, 94n]]);
    await ledger.close();
    expect(await node()).toMatchObject({ ended: true });
  });

  test("a ledger that ends with open holds does not report its end, so that they are recovered", async () => {
    const ledger = createLedger({ url: billing.url, connections: 1, holdWaitMs });
    const accountId = await billing.account(100n);
    const id = newId();
    await ledger.hold({ id, accountId, amountNanos: 10n, keyId: "" });
    await ledger.close();
    expect(await billing.count("node", `id = '${ledger.nodeId}' and ended is null`)).toBe(1);
    await billing.pool.query("update node set ended = now() where id = $1", [ledger.nodeId]);
    expect(await createBillingJobs({ pool: billing.pool }).recoverHolds()).toBe(1);
  });

  test("what comes within a millisecond of a large batch joins one batch, and what comes after a small one is sent at once", async () => {
    const points: string[] = [];
    const failpoint = (point: string): void => void points.push(point);
    const ledger = createLedger({ url: billing.url, connections: 2, holdWaitMs, failpoint });
    const accountId = await billing.account(1_000n);
    const ids: string[] = [];
    const hold = async (): Promise<void> => {
      const id = newId();
      ids.push(id);
      await ledger.hold({ id, accountId, amountNanos: 10n, keyId: "" });
    };
    const batches = (): number => points.filter((point) => point === "hold.sent").length;
    await hold();
    await hold();
    expect(batches()).toBe(2);
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    try {
      await Promise.all(Array.from({ length: 24 }, hold));
      expect(batches()).toBe(3);
      const later = [hold()];
      // Long enough for a batch to be sent, and answered, that does not wait.
      for (let turn = 0; turn < 10; turn++) {
        await billing.pool.query("select 1");
        later.push(hold());
      }
      expect(batches()).toBe(3);
      vi.advanceTimersByTime(1);
      await Promise.all(later);
      expect(batches()).toBe(4);
    } finally {
      vi.useRealTimers();
    }
    for (const id of ids) {
      const record = callRow(id, accountId, { cost: "0", held: "10" });
      await ledger.settle({ id, accountId, costNanos: 0n, record });
    }
    await ledger.close();
  });

  test("R-MON-7: an abandoned hold holds nothing, also if another one was abandoned just before its account's queue was empty", async () => {
    const ledger = createLedger({ url: billing.url, connections: 1, holdWaitMs: 200 });
    const accounts = [await billing.account(100n), await billing.account(100n)];
    const [accountId = "", other = ""] = accounts;
    const hold = (account: string, id = newId()): Promise<unknown> =>
      ledger.hold({ id, accountId: account, amountNanos: 10n, keyId: "" });
    const lock = async (account: string): Promise<() => Promise<void>> => {
      const client = await billing.pool.connect();
      await client.query("begin");
      await client.query("select from balance where account_id = $1 for update", [account]);
      return async () => {
        await client.query("rollback");
        client.release();
      };
    };
    const first = newId();
    await hold(accountId, first);
    const unlock = await lock(accountId);
    const unlockOther = await lock(other);
    const record = callRow(first, accountId, { cost: "1", held: "10" });
    const settled = ledger.settle({ id: first, accountId, costNanos: 1n, record });
    // The settlement waits for the lock, so this waits in the queue, and is dropped from it.
    await vi.waitFor(async () => {
      const waiting = "select from pg_locks where not granted";
      expect((await billing.pool.query(waiting)).rowCount).toBeGreaterThan(0);
    });
    await expect(hold(accountId)).rejects.toThrow("balance cannot be checked");
    const late = newId();
    // The one connection is busy with the other account, so that this waits in a queue too.
    const given = settled.then(() =>
      Promise.allSettled([hold(other), hold(accountId, late)]).then((ends) =>
        ends.map(({ status }) => status),
      ),
    );
    await unlock();
    expect(await given).toEqual(["rejected", "rejected"]);
    await unlockOther();
    await ledger.flush();
    expect(await billing.count("open_hold", `account_id in ('${accountId}', '${other}')`)).toBe(0);
    expect(ledger.stats().openHolds).toBe(0);
    await ledger.close();
  });

  test("each operation passes its failpoints in order", async () => {
    const points: string[] = [];
    const failpoint = (point: string): void => void points.push(point);
    const ledger = createLedger({ url: billing.url, connections: 1, holdWaitMs, failpoint });
    const accountId = await billing.account(100n);
    const ids = [newId(), newId()];
    for (const id of ids) {
      await ledger.hold({ id, accountId, amountNanos: 10n, keyId: "" });
      await ledger.extend({ id, accountId, amountNanos: 20n });
      const record = callRow(id, accountId, { held: "10" });
      await ledger.settle({ id, accountId, costNanos: id === ids[0] ? 3n : 0n, record });
    }
    await ledger.close();
    const of = (op: string): string[] => points.filter((point) => point.startsWith(op));
    const stages = (op: string): string[] =>
      ["queued", "sent", "answered"].map((s) => `${op}.${s}`);
    expect(of("hold")).toEqual([...stages("hold"), ...stages("hold")]);
    expect(of("extend")).toEqual([...stages("extend"), ...stages("extend")]);
    expect(of("settle")).toEqual(stages("settle"));
    expect(of("release")).toEqual(stages("release"));
    expect(of("heartbeat")).toEqual(["heartbeat.sent", "heartbeat.answered"]);
  });

  test("extensions wait for the database, are re-sent, merge, and are refused once the ledger is closed", async () => {
    const proxy = await startFaultProxy(billing.url);
    const ledger = createLedger({ url: proxy.url, connections: 1, holdWaitMs });
    const accountId = await billing.account(100n);
    const id = newId();
    await ledger.hold({ id, accountId, amountNanos: 10n, keyId: "" });
    proxy.cutAtNextAnswer();
    expect(await ledger.extend({ id, accountId, amountNanos: 20n })).toEqual({ heldNanos: 20n });
    proxy.refuse(true);
    proxy.cut();
    const record = callRow(id, accountId, { model: "told" });
    const asked = [
      ledger.extend({ id, accountId, amountNanos: 50n, checkpointNanos: 3n, record }),
      ledger.extend({ id, accountId, amountNanos: 40n, checkpointNanos: 4n }),
      ledger.extend({ id, accountId, amountNanos: 60n }),
    ];
    expect(ledger.stats().pendingExtends).toBeLessThanOrEqual(2);
    proxy.refuse(false);
    expect((await Promise.all(asked)).at(-1)).toEqual({ heldNanos: 60n });
    const text = "select cost, record->>'model' as model from hold_checkpoint where hold_id = $1";
    expect((await billing.pool.query(text, [id])).rows).toEqual([{ cost: "4", model: "told" }]);
    await ledger.settle({ id, accountId, costNanos: 1n, record });
    await ledger.close();
    await expect(ledger.extend({ id, accountId, amountNanos: 1n })).rejects.toThrow("stopping");
    await proxy.close();
  });

  test("a checkpoint that cannot be stored is dropped, and its extension is granted", async () => {
    const warn = vi.fn();
    const ledger = createLedger({ url: billing.url, connections: 1, holdWaitMs, warn });
    const accountId = await billing.account(100n);
    const hold = { id: newId(), accountId, amountNanos: 10n, keyId: "" };
    await ledger.hold(hold);
    const { id } = hold;
    const wrong = { ...hold, amountNanos: 20n, checkpointNanos: 1n << 70n };
    expect(await ledger.extend(wrong)).toEqual({ heldNanos: 20n });
    expect(warn.mock.calls[0]?.[0]).toContain("checkpoint");
    await expect(ledger.extend({ id: "x", accountId, amountNanos: 1n })).rejects.toThrow("book");
    await ledger.settle({ id, accountId, costNanos: 1n, record: callRow(id, accountId) });
    expect(ledger.stats().pendingExtends).toBe(0);
    await ledger.close();
  });
});
