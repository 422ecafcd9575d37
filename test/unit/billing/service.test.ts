import { Pool } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { createBillingService } from "../../../src/billing/service.ts";
import { type Caller, operator } from "../../../src/core/caller.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { callRow } from "./calls/call-row.ts";
import { type Billing, openBilling } from "./harness.ts";
import { callRpcs, rpcs } from "./rpcs.ts";
import { newId } from "../../../src/core/uuid.ts";

const usd = (amountNanos: bigint, currencyCode = "USD") => ({ amountNanos, currencyCode });
const code = (errorCode: number) => expect.objectContaining({ code: errorCode });

describe("the billing service", () => {
  let billing: Billing;
  let service: ReturnType<typeof createBillingService>;
  let unknown: string;
  beforeAll(async () => {
    billing = await openBilling();
    unknown = newId();
    const accountExists = async (id: string): Promise<boolean> => id !== unknown;
    service = createBillingService({ clock: systemClock, pool: billing.pool, accountExists });
  });
  afterEach(() => billing.expectClean());
  afterAll(() => billing.close());

  const ops = () => rpcs(service, operator);
  const log = () => callRpcs(billing.pool, operator);
  const charge = async (accountId: string, cost: bigint, requestId?: string): Promise<string> => {
    const id = newId();
    await billing.apply({ accountId, holds: [{ id, amountNanos: cost }] });
    const record = callRow(id, accountId, { held: `${cost}`, request_id: requestId ?? id });
    await billing.apply({ accountId, settles: [{ id, costNanos: cost, record }] });
    return id;
  };

  test("the billing service shows the balance with the holds of running calls, and zero for an account without entries", async () => {
    const accountId = await billing.account(100n);
    await billing.apply({ accountId, holds: [{ id: newId(), amountNanos: 30n }] });
    expect((await ops().getBalance({ accountId })).balance).toMatchObject({
      accountId,
      balance: usd(100n),
      held: usd(30n),
      available: usd(70n),
    });
    expect((await ops().getBalance({ accountId: newId() })).balance).toMatchObject({
      balance: usd(0n),
      held: usd(0n),
      available: usd(0n),
    });
  });

  test("balances of several accounts come in the order of the request, for operators", async () => {
    const [rich, poor] = [await billing.account(5n), newId()];
    const { balances } = await ops().listBalances({ accountIds: [poor, rich, poor] });
    expect(balances.map(({ accountId }) => accountId)).toEqual([poor, rich, poor]);
    expect(balances.map(({ available }) => available?.amountNanos)).toEqual([0n, 5n, 0n]);
    expect((await ops().listBalances({})).balances).toEqual([]);
    for (const accountIds of [["x"], Array.from({ length: 1_001 }, () => rich)]) {
      await expect(ops().listBalances({ accountIds })).rejects.toEqual(
        code(ErrorCode.INVALID_REQUEST),
      );
    }
  });

  test("R-AUTH-6: a session sees its own account only, and another one's is not found", async () => {
    const accountId = await billing.account(5n);
    const own = rpcs(service, { kind: "session", accountId });
    const other = rpcs(service, { kind: "session", accountId: newId() });
    const key: Caller = { kind: "key", accountId, keyId: newId(), models: undefined };
    expect((await own.getBalance({ accountId })).balance?.available?.amountNanos).toBe(5n);
    expect((await own.listLedgerEntries({ accountId })).entries).toHaveLength(1);
    const notFound = code(ErrorCode.NOT_FOUND);
    for (const stranger of [other, rpcs(service, { kind: "anonymous" }), rpcs(service, key)]) {
      await expect(stranger.getBalance({ accountId })).rejects.toEqual(notFound);
      await expect(stranger.listLedgerEntries({ accountId })).rejects.toEqual(notFound);
    }
    for (const stranger of [
      { kind: "session", accountId: newId() } as const,
      { kind: "anonymous" } as const,
      key,
    ]) {
      const asked = callRpcs(billing.pool, stranger).listCalls({ accountId });
      await expect(asked).rejects.toEqual(notFound);
    }
    const all = callRpcs(billing.pool, { kind: "session", accountId }).listCalls({});
    await expect(all).rejects.toEqual(code(ErrorCode.INVALID_REQUEST));
  });

  test("R-MON-9: a top-up is booked once per reference, also when requested 20 times at once", async () => {
    const accountId = newId();
    const request = { accountId, amount: usd(50n), reference: "invoice 7" };
    const answers = await Promise.all(Array.from({ length: 20 }, () => ops().topUp(request)));
    expect(answers.filter((answer) => !answer.replayed)).toHaveLength(1);
    expect(answers.at(-1)?.balance?.balance).toMatchObject(usd(50n));
    const other = ops().topUp({ ...request, amount: usd(51n) });
    await expect(other).rejects.toEqual(code(ErrorCode.IDEMPOTENCY_KEY_REUSED));
    const elsewhere = await ops().topUp({
      ...request,
      accountId: newId(),
      amount: usd(1n, ""),
    });
    expect(elsewhere).toMatchObject({ replayed: false, balance: { available: usd(1n) } });
    expect(await billing.balance(accountId)).toEqual({ available: 50n, held: 0n });
  });

  test("an invalid top-up is refused with its reason, and books nothing", async () => {
    const accountId = newId();
    const right = { accountId, amount: usd(1n), reference: "r" };
    const { amount: _, ...without } = right;
    const wrong = [
      without,
      { ...right, amount: usd(0n) },
      { ...right, amount: usd(-1n) },
      { ...right, amount: usd(1_000_000_000_000_001n) },
      { ...right, amount: usd(1n, "EUR") },
      { ...right, reference: "" },
      { ...right, reference: "x".repeat(201) },
      { ...right, reference: "a\0b" },
      { ...right, reference: "\ud800" },
      { ...right, accountId: "1' or true --" },
      { ...right, accountId: "" },
    ];
    for (const request of wrong) {
      await expect(ops().topUp(request)).rejects.toEqual(code(ErrorCode.INVALID_REQUEST));
    }
    const missing = ops().topUp({ ...right, accountId: unknown });
    await expect(missing).rejects.toEqual(code(ErrorCode.NOT_FOUND));
    expect(await billing.balance(accountId)).toEqual({ available: 0n, held: 0n });
    expect(await ops().topUp({ ...right, amount: usd(1_000_000_000_000_000n) })).toBeDefined();
  });

  test("R-MON-9: refunds return a charge, never more than the customer paid for it", async () => {
    const accountId = await billing.account(100n);
    const callId = await charge(accountId, 60n);
    const refund = (amountNanos: bigint, reference: string, id = callId) =>
      ops().refund({ accountId, callId: id, amount: usd(amountNanos), reference });
    expect(await refund(40n, "a")).toMatchObject({
      replayed: false,
      balance: { available: usd(80n) },
    });
    expect(await refund(40n, "a")).toMatchObject({
      replayed: true,
      balance: { available: usd(80n) },
    });
    await expect(refund(39n, "a")).rejects.toEqual(code(ErrorCode.IDEMPOTENCY_KEY_REUSED));
    await expect(refund(21n, "b")).rejects.toEqual(code(ErrorCode.INSUFFICIENT_BALANCE));
    await expect(refund(21n, "b")).rejects.toThrow("0.00000002 USD");
    const race = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) => refund(15n, `race ${n}`)),
    );
    expect(race.filter((result) => result.status === "fulfilled")).toHaveLength(1);
    const other = await billing.account(10n);
    const foreign = await charge(other, 10n);
    await expect(refund(1n, "c", foreign)).rejects.toEqual(code(ErrorCode.NOT_FOUND));
    await expect(refund(1n, "c", newId())).rejects.toEqual(code(ErrorCode.NOT_FOUND));
    await expect(refund(1n, "c", "x")).rejects.toEqual(code(ErrorCode.INVALID_REQUEST));
    expect(await billing.balance(accountId)).toEqual({ available: 95n, held: 0n });
  });

  test("R-MON-9: the platform's part of a charge is not refunded to the customer", async () => {
    const accountId = await billing.account(10n);
    const id = newId();
    await billing.apply({ accountId, holds: [{ id, amountNanos: 10n }] });
    await billing.apply({
      accountId,
      settles: [{ id, costNanos: 25n, record: callRow(id, accountId, { held: "10" }) }],
    });
    const refund = { accountId, callId: id, amount: usd(11n), reference: "r" };
    await expect(ops().refund(refund)).rejects.toEqual(code(ErrorCode.INSUFFICIENT_BALANCE));
    expect(await ops().refund({ ...refund, amount: usd(10n) })).toMatchObject({ replayed: false });
  });

  test("the billing service lists the ledger entries of an account newest first, page by page", async () => {
    const accountId = await billing.account();
    await ops().topUp({ accountId, amount: usd(100n), reference: "paid" });
    const callId = await charge(accountId, 60n);
    await ops().refund({ accountId, callId, amount: usd(5n), reference: "sorry" });
    await billing.account(7n);
    const { entries, nextPageToken } = await ops().listLedgerEntries({ accountId });
    expect(nextPageToken).toBe("");
    expect(
      entries.map(({ kind, amount, reference }) => [kind, amount?.amountNanos, reference]),
    ).toEqual([
      [LedgerKind.REFUND, 5n, "sorry"],
      [LedgerKind.CHARGE, -60n, ""],
      [LedgerKind.TOP_UP, 100n, "paid"],
    ]);
    expect(entries[1]?.transactionId).toBe(callId);
    expect(Number(entries[0]?.createTime?.seconds)).toBeGreaterThan(1_700_000_000);
    const first = await ops().listLedgerEntries({ accountId, pageSize: 2 });
    const second = await ops().listLedgerEntries({
      accountId,
      pageSize: 2,
      pageToken: first.nextPageToken,
    });
    expect([...first.entries, ...second.entries]).toEqual(entries);
    expect([first.entries.length, second.nextPageToken]).toEqual([2, ""]);
  });

  test("R-ID-4, R-ID-6: calls are listed per account, and found by a request id that repeats", async () => {
    const [accountId, other] = [await billing.account(1_000n), await billing.account(1_000n)];
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift(await charge(accountId, BigInt(n + 1), "same"));
    const foreign = await charge(other, 1n, "same");
    const { calls } = await log().listCalls({ accountId });
    expect(calls.map((call) => call.callId)).toEqual(ids);
    expect(calls[0]).toMatchObject({
      requestId: "same",
      accountId,
      model: "demo",
      status: 200,
      usage: { inputTokens: 10, outputTokens: 5 },
      cost: usd(5n),
      held: usd(5n),
      duration: { seconds: 0n, nanos: 12_000_000 },
      startTime: { seconds: 1767323045n, nanos: 678_000_000 },
    });
    const filter = { requestId: "same" };
    const found = await log().listCalls({ accountId, filter, pageSize: 3 });
    expect(found.calls.map((call) => call.callId)).toEqual(ids.slice(0, 3));
    const rest = { accountId, filter, pageToken: found.nextPageToken };
    expect((await log().listCalls(rest)).calls.map((call) => call.callId)).toEqual(ids.slice(3));
    const all = await log().listCalls({ filter });
    expect(all.calls.map((call) => call.callId)).toEqual([foreign, ...ids]);
    for (const requestId of ["none", "SAME", "'"]) {
      expect((await log().listCalls({ filter: { requestId } })).calls).toEqual([]);
    }
    for (const requestId of ["a\0b", "\ud800", "x".repeat(257)]) {
      const noText = log().listCalls({ filter: { requestId } });
      await expect(noText).rejects.toEqual(code(ErrorCode.INVALID_REQUEST));
    }
  });

  test("R-ERR-7: an invalid page token is refused as the client's error", async () => {
    const accountId = await billing.account(1n);
    const bad = ["x", "!!", "AAAA", Buffer.from("1:'; drop").toString("base64url"), "\0"];
    for (const pageToken of bad) {
      const invalid = code(ErrorCode.INVALID_REQUEST);
      await expect(log().listCalls({ accountId, pageToken })).rejects.toEqual(invalid);
      await expect(ops().listLedgerEntries({ accountId, pageToken })).rejects.toEqual(invalid);
    }
    const negative = log().listCalls({ accountId, pageSize: -1 });
    await expect(negative).rejects.toEqual(code(ErrorCode.INVALID_REQUEST));
    expect((await log().listCalls({ accountId, pageSize: 2_000_000_000 })).calls).toEqual([]);
  });

  test("R-MON-6: the audit is an RPC; an unreachable database is 503", async () => {
    expect((await ops().auditLedger({})).findings).toEqual([]);
    const pool = new Pool({ connectionString: "postgres://127.0.0.1:1/none" });
    const away = createBillingService({
      clock: systemClock,
      pool,
      accountExists: async () => true,
    });
    const unavailable = code(ErrorCode.SERVICE_UNAVAILABLE);
    await expect(rpcs(away, operator).auditLedger({})).rejects.toEqual(unavailable);
    const accountId = newId();
    const topUp = rpcs(away, operator).topUp({ accountId, amount: usd(1n), reference: "r" });
    await expect(topUp).rejects.toEqual(unavailable);
    await pool.end();
  });
});
