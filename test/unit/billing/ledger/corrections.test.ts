/**
 * Grants and corrections: money that the operator moves, each once per account and reference
 * (R-MON-9).
 */
import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { LedgerKind, TopUpSource } from "../../../../gen/uas/billing/v1/billing_pb.ts";
import { createBillingService } from "../../../../src/billing/service.ts";
import { operator } from "../../../../src/core/caller.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { codeOf } from "../../key/rooms.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, openBilling } from "../harness.ts";
import { rpcs } from "../rpcs.ts";
import { newId } from "../../../../src/core/uuid.ts";

let billing: Billing;
let accountId: string;

beforeAll(async () => {
  billing = await openBilling();
});
afterAll(() => billing.close());
beforeEach(async () => {
  accountId = await billing.account(100n);
});

const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });

const onLowBalance = vi.fn();

const ops = () =>
  rpcs(
    createBillingService({
      clock: systemClock,
      pool: billing.pool,
      accountExists: async () => true,
      onLowBalance,
    }),
    operator,
  );

function adjust(amountNanos: bigint, reference: string, reason = "typo in invoice 7") {
  return ops().adjustBalance({ accountId, amount: usd(amountNanos), reason, reference });
}

/** The other side of each of the account's transactions: which ledger account has what. */
async function otherSides(): Promise<unknown[]> {
  const { rows } = await billing.pool.query<{ account: number; amount: string }>(
    "select account, amount from ledger_entry where account_id = $1 and account <> 1 order by txn_id",
    [accountId],
  );
  return rows.slice(1).map(({ account, amount }) => [account, BigInt(amount)]);
}

describe("AdjustBalance", () => {
  test("R-MON-6: corrects up and down, once per reference, and records the reason", async () => {
    expect(await adjust(-30n, "a")).toMatchObject({
      replayed: false,
      balance: { available: usd(70n), held: usd(0n) },
    });
    expect(await adjust(-30n, "a")).toMatchObject({
      replayed: true,
      balance: { available: usd(70n) },
    });
    expect(await adjust(5n, "b", "goodwill")).toMatchObject({ balance: { balance: usd(75n) } });
    const { entries } = await ops().listLedgerEntries({ accountId });
    expect(entries.slice(0, 2)).toMatchObject([
      {
        kind: LedgerKind.ADJUSTMENT,
        amount: usd(5n),
        reference: "b",
        reason: "goodwill",
        balanceAfter: usd(75n),
      },
      {
        kind: LedgerKind.ADJUSTMENT,
        amount: usd(-30n),
        reference: "a",
        reason: "typo in invoice 7",
        balanceAfter: usd(70n),
      },
    ]);
    // The platform bears it, or has it.
    expect(await otherSides()).toEqual([
      [6, 30n],
      [6, -5n],
    ]);
    expect((await ops().auditLedger({})).findings).toEqual([]);
  });

  test("R-MON-3: never takes more than is available: held money stays reserved", async () => {
    await billing.apply({ accountId, holds: [{ id: newId(), amountNanos: 60n }] });
    expect(await codeOf(adjust(-41n, "a"))).toBe(ErrorCode.INSUFFICIENT_BALANCE);
    await expect(adjust(-41n, "a")).rejects.toThrow("available balance: 0.00000004 USD");
    await adjust(-40n, "a");
    expect(await billing.balance(accountId)).toEqual({ available: 0n, held: 60n });
    const race = await Promise.allSettled([1, 2, 3].map((n) => adjust(-1n, `race ${n}`)));
    expect(race.every(({ status }) => status === "rejected")).toBe(true);
  });

  test("reports an account that falls below its threshold once, also where its money is held", async () => {
    const text = "update balance set low_below = 70 where account_id = $1";
    await billing.pool.query(text, [accountId]);
    await billing.apply({ accountId, holds: [{ id: newId(), amountNanos: 60n }] });
    await adjust(-30n, "a");
    expect(onLowBalance).not.toHaveBeenCalled();
    await adjust(-1n, "b");
    await adjust(-1n, "b");
    await adjust(-1n, "c");
    expect(onLowBalance.mock.calls).toEqual([[accountId, 69n]]);
  });

  test("R-MON-9: another amount, reason or kind under a reference is refused", async () => {
    await adjust(1n, "a");
    const others = [
      adjust(-1n, "a"),
      adjust(2n, "a"),
      adjust(1n, "a", "another reason"),
      ops().topUp({ accountId, amount: usd(1n), reference: "a" }),
    ];
    const codes = await Promise.all(others.map(codeOf));
    expect(codes).toEqual(others.map(() => ErrorCode.IDEMPOTENCY_KEY_REUSED));
    expect(await billing.balance(accountId)).toEqual({ available: 101n, held: 0n });
  });

  test("R-ERR-7: refuses invalid requests and books nothing", async () => {
    const right = { accountId, amount: usd(1n), reason: "r", reference: "r" };
    const { amount: _, ...without } = right;
    const wrong = [
      without,
      { ...right, amount: usd(0n) },
      { ...right, amount: usd(1_000_000_000_000_001n) },
      { ...right, amount: usd(-1_000_000_000_000_001n) },
      { ...right, amount: usd(-(1n << 63n)) },
      { ...right, amount: { currencyCode: "EUR", amountNanos: 1n } },
      { ...right, reason: " " },
      { ...right, reason: "a\nb" },
      { ...right, reason: "x".repeat(501) },
      { ...right, reference: "" },
    ];
    for (const request of wrong) {
      expect(await codeOf(ops().adjustBalance(request))).toBe(ErrorCode.INVALID_REQUEST);
    }
    expect(await billing.balance(accountId)).toEqual({ available: 100n, held: 0n });
  });

  test("R-MON-1: any series of corrections ends at its sum, or stops where it would go below zero", async () => {
    const amounts = fc.array(
      fc.bigInt({ min: -80n, max: 80n }).filter((nanos) => nanos !== 0n),
      {
        maxLength: 8,
      },
    );
    await fc.assert(
      fc.asyncProperty(amounts, async (series) => {
        accountId = await billing.account(100n);
        let expected = 100n;
        for (const [n, amountNanos] of series.entries()) {
          const code = await codeOf(adjust(amountNanos, `${n}`));
          const fits = expected + amountNanos >= 0n;
          expect(code).toBe(fits ? undefined : ErrorCode.INSUFFICIENT_BALANCE);
          if (fits) expected += amountNanos;
        }
        expect(await billing.balance(accountId)).toEqual({ available: expected, held: 0n });
      }),
      { numRuns: 10 },
    );
    expect((await ops().auditLedger({})).findings).toEqual([]);
  });
});

describe("TopUp", () => {
  test("books a grant against promo, a payment against cash_in; their references are one set", async () => {
    const grant = { accountId, amount: usd(3n), reference: "welcome", source: TopUpSource.PROMO };
    expect(await ops().topUp(grant)).toMatchObject({ replayed: false });
    expect(await ops().topUp(grant)).toMatchObject({ replayed: true });
    const paid = ops().topUp({ ...grant, source: TopUpSource.PAYMENT });
    expect(await codeOf(paid)).toBe(ErrorCode.IDEMPOTENCY_KEY_REUSED);
    const unsaid = { accountId, amount: usd(4n), reference: "invoice 8" };
    await ops().topUp(unsaid);
    expect(await ops().topUp({ ...unsaid, source: TopUpSource.PAYMENT })).toMatchObject({
      replayed: true,
    });
    const { entries } = await ops().listLedgerEntries({ accountId });
    expect(entries.map(({ kind, reason }) => [kind, reason])).toEqual([
      [LedgerKind.TOP_UP, ""],
      [LedgerKind.PROMO, ""],
      [LedgerKind.TOP_UP, ""],
    ]);
    expect(await otherSides()).toEqual([
      [4, -3n],
      [3, -4n],
    ]);
    const later = ops().topUp({ ...unsaid, reference: "x", source: 7 as TopUpSource });
    expect(await codeOf(later)).toBe(ErrorCode.INVALID_REQUEST);
  });
});

describe("Refund", () => {
  test("uses the call's account where the request has none", async () => {
    const id = newId();
    const refund = { callId: id, amount: usd(10n), reference: "r" };
    expect(await codeOf(ops().refund(refund))).toBe(ErrorCode.NOT_FOUND);
    await billing.apply({ accountId, holds: [{ id, amountNanos: 50n }] });
    const record = callRow(id, accountId, { held: "50" });
    await billing.apply({ accountId, settles: [{ id, costNanos: 50n, record }] });
    expect(await ops().refund(refund)).toMatchObject({
      replayed: false,
      balance: { accountId, available: usd(60n) },
    });
  });
});
