import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { LedgerKind } from "../../../../gen/uas/billing/v1/billing_pb.ts";
import { book } from "../../../../src/billing/ledger/booking.ts";
import { createBillingJobs } from "../../../../src/billing/jobs.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, openBilling } from "../harness.ts";
import { newId } from "../../../../src/core/uuid.ts";

describe("processes that are lost", () => {
  let billing: Billing;
  beforeAll(async () => void (billing = await openBilling()));
  afterEach(() => billing.expectClean());
  afterAll(() => billing.close());

  const beat = async (nodeId: string): Promise<boolean> => {
    const text = "select revived from ledger_heartbeat($1, 'test', 20000)";
    return (
      (await billing.pool.query<{ revived: boolean }>(text, [nodeId])).rows[0]?.revived ?? false
    );
  };
  /** A process that has been in touch for a minute. */
  const steady = async (): Promise<string> => {
    const nodeId = newId();
    await beat(nodeId);
    await billing.pool.query(
      "update node set steady_time = steady_time - interval '1 min' where id = $1",
      [nodeId],
    );
    return nodeId;
  };
  const sweep = (nodeId?: string): Promise<number> =>
    createBillingJobs({
      pool: billing.pool,
      ...(nodeId !== undefined && { nodeId }),
    }).recoverHolds();
  /** A hold of a process that has died since, with a checkpoint if `cost` is given. */
  const lost = async (
    accountId: string,
    amountNanos: bigint,
    cost?: bigint,
    rest: { vendor_cost?: string; duration_ms?: number; keyId?: string } = {},
  ): Promise<string> => {
    const [id, nodeId] = [newId(), newId()];
    const { keyId = "", ...record } = rest;
    await billing.send({ accountId, holds: [{ id, amountNanos, keyId }] }, nodeId);
    const row = callRow(id, accountId, { ...record, key_id: keyId, model: "told", held: "1" });
    const told = { id, amountNanos: 0n, checkpointNanos: cost ?? 0n, record: row };
    if (cost !== undefined) await billing.send({ accountId, extends: [told] });
    await billing.silence(nodeId, 21);
    return id;
  };
  const call = async (id: string): Promise<unknown> =>
    (
      await billing.pool.query(
        "select model, cost, held, ending, vendor_cost from call where id = $1",
        [id],
      )
    ).rows;
  const told = { model: "told", held: "1", ending: 9, vendor_cost: null };

  test("R-MON-7: the holds of a silent process are settled at their checkpoint, or released; all recorded", async () => {
    const accountId = await billing.account(100n);
    const keyId = newId();
    const streaming = await lost(accountId, 30n, 12n, { vendor_cost: "5", keyId });
    const fresh = await lost(accountId, 20n);
    const zero = await lost(accountId, 10n, 0n);
    expect(await sweep(await steady())).toBe(3);
    expect(await billing.balance(accountId)).toEqual({ available: 88n, held: 0n });
    expect(await billing.entries(streaming)).toEqual({ 1: "-12", 2: "12", 7: "-5", 8: "5" });
    // The final hold, not the hold at the time of the checkpoint.
    const known = { cost: "12", held: "30", vendor_cost: "5" };
    expect(await call(streaming)).toEqual([{ ...told, ...known }]);
    expect(await call(zero)).toEqual([{ ...told, cost: "0", held: "10" }]);
    const bare = { model: "", cost: "0", held: "20", ending: 9, vendor_cost: null };
    expect(await call(fresh)).toEqual([bare]);
    const text = "select start_time from call where id = $1";
    const { rows } = await billing.pool.query<{ start_time: Date }>(text, [fresh]);
    const made = Number.parseInt(fresh.replaceAll("-", "").slice(0, 12), 16);
    expect(rows[0]?.start_time.getTime()).toBe(made);
  });

  test("R-MON-7: the holds of a process that died before the database's clock was set back by a day are freed", async () => {
    const accountId = await billing.account(100n);
    const judge = await steady();
    const id = newId();
    const dead = newId();
    await billing.send({ accountId, holds: [{ id, amountNanos: 20n, keyId: "" }] }, dead);
    await billing.pool.query(
      "update node set seen_time = seen_time + interval '1 day', steady_time = steady_time + interval '1 day'",
    );
    // Its silence begins: who lives has time to be in touch. The judge has been in touch for no
    // time by this clock.
    await beat(judge);
    expect(await sweep(judge)).toBe(0);
    await billing.pool.query(
      "update node set steady_time = steady_time - interval '21 s' where id = $1",
      [judge],
    );
    expect(await sweep(judge)).toBe(0);
    await billing.silence(dead, 21);
    expect(await sweep(judge)).toBe(1);
    expect(await billing.balance(accountId)).toEqual({ available: 100n, held: 0n });
  });

  test("R-MON-2: the hold of a running call stays open when the database's clock is set forward by a day, and a hold without renewals is freed later", async () => {
    const accountId = await billing.account(100n);
    const [id, nodeId] = [newId(), await steady()];
    await billing.send({ accountId, holds: [{ id, amountNanos: 20n }] }, nodeId);
    const past = "- interval '1 day'";
    await billing.pool.query(
      `with n as (update node set seen_time = seen_time ${past}, steady_time = steady_time ${past} where id = $1)
        update open_hold set expires_at = expires_at ${past} where node_id = $1`,
      [nodeId],
    );
    // Its heartbeat is due, then the renewal of its holds.
    expect(await sweep()).toBe(0);
    await beat(nodeId);
    expect(await sweep()).toBe(0);
    expect(await billing.balance(accountId)).toEqual({ available: 80n, held: 20n });
    await billing.pool.query(
      "update node set steady_time = steady_time - interval '16 min' where id = $1",
      [nodeId],
    );
    expect(await sweep()).toBe(1);
    expect(await billing.balance(accountId)).toEqual({ available: 100n, held: 0n });
  });

  test("R-MON-7: a checkpoint above the hold takes the available balance, and the rest is the platform's loss", async () => {
    const accountId = await billing.account(50n);
    const id = await lost(accountId, 30n, 70n);
    await sweep(await steady());
    expect(await billing.entries(id)).toEqual({ 1: "-50", 2: "70", 6: "-20" });
  });

  test("an unreadable checkpoint record does not keep the money held", async () => {
    const accountId = await billing.account(50n);
    const id = await lost(accountId, 30n, 7n, { duration_ms: 0.5 });
    await sweep(await steady());
    expect(await call(id)).toEqual([{ ...told, model: "", held: "30", cost: "7" }]);
    expect(await billing.balance(accountId)).toEqual({ available: 43n, held: 0n });
  });

  test("a process without steady heartbeats declares no other one dead, because the database was unreachable", async () => {
    const accountId = await billing.account(50n);
    const id = await lost(accountId, 30n, 7n);
    const [fresh, gone] = [newId(), await steady()];
    await beat(fresh);
    expect(await sweep(fresh)).toBe(0);
    // A process that returns after a gap starts again, and a silent process declares no other one
    // dead.
    await billing.silence(gone, 11);
    expect(await sweep(gone)).toBe(0);
    await beat(gone);
    expect(await sweep(gone)).toBe(0);
    expect(await billing.balance(accountId)).toEqual({ available: 20n, held: 30n });
    await billing.send({ accountId, settles: [[id, 7n]] });
  });

  test("R-MON-7: the holds of a dead process are recovered by the next one where the recovering process dies too", async () => {
    const accountId = await billing.account(50n);
    const id = await lost(accountId, 30n);
    const text =
      "update node set ended = now() - interval '16 min' where id = (select node_id from hold where id = $1)";
    await billing.pool.query(text, [id]);
    expect(await sweep(await steady())).toBe(1);
    expect(await billing.balance(accountId)).toEqual({ available: 50n, held: 0n });
  });

  test("a process that was declared dead by mistake keeps its open holds", async () => {
    const accountId = await billing.account(50n);
    const [id, nodeId] = [newId(), newId()];
    await billing.send({ accountId, holds: [{ id, amountNanos: 10n }] }, nodeId);
    await billing.pool.query("update node set ended = now() where id = $1", [nodeId]);
    expect(await beat(nodeId)).toBe(true);
    expect(await beat(nodeId)).toBe(false);
    expect(await sweep(await steady())).toBe(0);
    await billing.send({ accountId, settles: [[id, 1n]] });
  });

  test("a hold whose batch was under way when its process was declared dead is recovered too", async () => {
    const accountId = await billing.account(50n);
    await lost(accountId, 10n);
    const sweeper = await steady();
    expect(await sweep(sweeper)).toBe(1);
    const { rows } = await billing.pool.query<{ id: string }>(
      "select id from node where ended is not null order by ended desc limit 1",
    );
    const late = { id: newId(), amountNanos: 5n };
    await billing.send({ accountId, holds: [late] }, rows[0]?.id);
    expect(await sweep(sweeper)).toBe(1);
    expect(await billing.balance(accountId)).toEqual({ available: 50n, held: 0n });
  });

  test("R-MON-2: a late settlement replaces the checkpoint, up or down, once, and its record", async () => {
    const keyId = newId();
    for (const [real, entries, left] of [
      [20n, { 1: "-8", 2: "8", 7: "-4", 8: "4" }, 80n],
      [5n, { 1: "7", 2: "-7", 7: "-4", 8: "4" }, 95n],
      [0n, { 1: "12", 2: "-12", 7: "-4", 8: "4" }, 100n],
      [12n, { 7: "-4", 8: "4" }, 88n],
    ] as const) {
      const accountId = await billing.account(100n);
      const id = await lost(accountId, 30n, 12n, { vendor_cost: "5", keyId });
      await sweep(await steady());
      const settle = () =>
        billing.send({ accountId, settles: [[id, real, { vendor_cost: "9", model: "real" }]] });
      expect((await settle()).settles).toEqual(["settled"]);
      expect((await settle()).settles).toEqual(["already"]);
      expect(await billing.corrections(id)).toEqual([entries]);
      expect(await billing.balance(accountId)).toEqual({ available: left, held: 0n });
      const record = { model: "real", held: "1", ending: 1, vendor_cost: "9", cost: `${real}` };
      expect(await call(id)).toEqual([record]);
      await billing.expectClean();
    }
    const { rows } = await billing.pool.query(
      "select spent, held from key_spend where key_id = $1",
      [keyId],
    );
    expect(rows).toEqual([{ spent: "37", held: "0" }]);
  });

  test("a late settlement of an uncharged call becomes its charge, and first repays the platform's loss", async () => {
    const accountId = await billing.account(50n);
    const [released, short] = [await lost(accountId, 10n), await lost(accountId, 30n, 70n)];
    await sweep(await steady());
    expect(await billing.entries(short)).toEqual({ 1: "-50", 2: "70", 6: "-20" });
    await billing.send({ accountId, settles: [[short, 40n]] });
    expect(await billing.corrections(short)).toEqual([{ 1: "10", 2: "-30", 6: "20" }]);
    await billing.send({ accountId, settles: [[released, 25n]] });
    expect(await billing.entries(released)).toEqual({ 1: "-10", 2: "25", 6: "-15" });
    expect(await billing.corrections(released)).toEqual([]);
  });

  test("R-MON-9: a correction cannot be refunded in addition to its charge", async () => {
    const accountId = await billing.account(100n);
    const id = await lost(accountId, 30n, 12n);
    await sweep(await steady());
    await billing.send({ accountId, settles: [[id, 20n]] });
    const { rows } = await billing.pool.query<{ txn_id: string }>(
      "select txn_id from ledger_entry where call_id = $1 and account = 1",
      [id],
    );
    const refund = { kind: LedgerKind.REFUND, accountId, amountNanos: 8n } as const;
    const ofCorrection = book(billing.pool, {
      ...refund,
      callId: rows[0]?.txn_id,
      reference: "correction",
    });
    await expect(ofCorrection).rejects.toThrow("has no charge");
    const whole = { ...refund, amountNanos: 20n, callId: id, reference: "whole" };
    expect(await book(billing.pool, whole)).toMatchObject({ replayed: false });
  });

  test("R-MON-12: what an account cannot pay of a recovered hold, or of its late settlement, is reported as the platform's loss", async () => {
    const accountId = await billing.account(30n);
    const id = await lost(accountId, 30n, 40n);
    const other = await lost(await billing.account(30n), 30n, 12n);
    const losses: [string, bigint][] = [];
    const onLoss = (...loss: [string, bigint]): unknown => losses.push(loss);
    const nodeId = await steady();
    await createBillingJobs({ pool: billing.pool, nodeId, onLoss }).recoverHolds();
    expect(losses).toEqual([[accountId, 10n]]);
    const late = async (holdId: string, cost: bigint, holder: string): Promise<unknown> =>
      (await billing.send({ accountId: holder, settles: [[holdId, cost]] })).loss;
    expect(await late(id, 55n, accountId)).toBe(15n);
    const { rows } = await billing.pool.query<{ account_id: string }>(
      "select account_id from hold where id = $1",
      [other],
    );
    expect(await late(other, 20n, rows[0]?.account_id ?? "")).toBeUndefined();
    expect(await billing.entries(id)).toEqual({ 1: "-30", 2: "40", 6: "-10" });
    expect(await billing.corrections(id)).toEqual([{ 2: "15", 6: "-15" }]);
  });

  test("R-MON-9: the refunded part of a checkpoint's charge is not returned again", async () => {
    const accountId = await billing.account(100n);
    const id = await lost(accountId, 30n, 12n);
    await sweep(await steady());
    const refund = { kind: LedgerKind.REFUND, accountId, reference: "r", callId: id } as const;
    await book(billing.pool, { ...refund, amountNanos: 10n });
    await billing.send({ accountId, settles: [[id, 4n]] });
    expect(await billing.corrections(id)).toEqual([{ 1: "2", 2: "-8", 6: "6" }]);
    await expect(
      book(billing.pool, { ...refund, reference: "again", amountNanos: 1n }),
    ).rejects.toThrow("what is left");
    // A correction upwards can be refunded too.
    const other = await lost(accountId, 30n, 5n);
    await sweep(await steady());
    await billing.send({ accountId, settles: [[other, 15n]] });
    await book(billing.pool, { ...refund, callId: other, reference: "o", amountNanos: 15n });
  });
});
