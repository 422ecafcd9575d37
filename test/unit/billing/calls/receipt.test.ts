/** Receipts of calls as the ledger has booked them. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { LedgerKind } from "../../../../gen/uas/billing/v1/billing_pb.ts";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { HoldEventKind, PriceUnit } from "../../../../gen/uas/billing/v1/receipt_pb.ts";
import { createLedger } from "../../../../src/billing/ledger/ledger-writer.ts";
import { createPriceBook } from "../../../../src/billing/prices/pricing.ts";
import { parsePrice } from "../../../../src/billing/prices/price-form.ts";
import { createBillingService } from "../../../../src/billing/service.ts";
import { operator } from "../../../../src/core/caller.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { always } from "../../../support/gateway.ts";
import { callRow } from "./call-row.ts";
import { type Billing, openBilling } from "../harness.ts";
import { callRpcs, rpcs } from "../rpcs.ts";
import { newId } from "../../../../src/core/uuid.ts";

const byId = (value: string) => ({ call: { case: "callId", value } }) as const;
const byRequest = (value: string) => ({ call: { case: "requestId", value } }) as const;

describe("GetCall", () => {
  let billing: Billing;
  let service: ReturnType<typeof createBillingService>;
  const price = parsePrice({ input: "3000000", output: "7000000" });
  let priceVersion: string;
  beforeAll(async () => {
    billing = await openBilling();
    service = createBillingService({
      clock: systemClock,
      pool: billing.pool,
      accountExists: async () => true,
    });
    const book = createPriceBook({ pool: billing.pool });
    await book.load([{ key: "m", prices: always(price) }]);
    priceVersion = book.version(price);
  });
  afterEach(() => billing.expectClean());
  afterAll(() => billing.close());

  const ops = () => rpcs(service, operator);
  const log = () => callRpcs(billing.pool, operator);
  const code = (errorCode: number) => expect.objectContaining({ code: errorCode });
  // 10 × 3 + 5 × 7 nano-USD: see callRow.
  const costNanos = 65n;

  /** Charges a call, for which `held` was held. */
  async function charge(accountId: string, held: bigint, requestId: string): Promise<string> {
    const callId = newId();
    await billing.apply({ accountId, holds: [{ id: callId, amountNanos: held }] });
    const record = callRow(callId, accountId, {
      held: `${held}`,
      cost: `${costNanos}`,
      request_id: requestId,
      price_version: priceVersion,
      vendor_cost: "40",
    });
    await billing.apply({ accountId, settles: [{ id: callId, costNanos, record }] });
    return callId;
  }

  test("R-MON-1, R-MON-6: shows lines, hold, entries with the balance before and after, and refunds", async () => {
    const accountId = await billing.account(1_000n);
    const callId = await charge(accountId, 100n, "r-1");
    const refund = { accountId, callId, amount: { currencyCode: "USD", amountNanos: 5n } };
    await ops().refund({ ...refund, reference: "sorry" });
    const { receipt } = await log().getCall(byId(callId));
    expect(receipt).toMatchObject({
      call: { callId, priceVersion },
      charged: true,
      lines: [
        { unit: PriceUnit.INPUT, quantity: "10", price: "0.003", amount: "0.00000003" },
        { unit: PriceUnit.OUTPUT, quantity: "5", price: "0.007", amount: "0.000000035" },
      ],
      subtotal: "0.000000065",
      amount: { amountNanos: costNanos },
      recomputed: { amountNanos: costNanos },
      shortfall: { amountNanos: 0n },
      vendorCost: { amountNanos: 40n },
    });
    expect(receipt?.holds.map(({ kind, held }) => [kind, held?.amountNanos])).toEqual([
      [HoldEventKind.HELD, 100n],
      [HoldEventKind.SETTLED, 0n],
    ]);
    expect(
      receipt?.entries.map(({ kind, amount, balanceBefore, balanceAfter, reference }) => [
        kind,
        amount?.amountNanos,
        balanceBefore?.amountNanos,
        balanceAfter?.amountNanos,
        reference,
      ]),
    ).toEqual([
      [LedgerKind.CHARGE, -65n, 1_000n, 935n, ""],
      [LedgerKind.REFUND, 5n, 935n, 940n, "sorry"],
    ]);
    expect(receipt?.entries[0]?.transactionId).toBe(callId);
  });

  test("shows how a hold grew, and the shortfall of the balance", async () => {
    const accountId = await billing.account(50n);
    const callId = newId();
    const ledger = createLedger({ url: billing.url, connections: 1 });
    await ledger.hold({ id: callId, accountId, amountNanos: 20n, keyId: "" });
    for (const amountNanos of [35n, 50n]) {
      await ledger.extend({ id: callId, accountId, amountNanos });
    }
    const record = callRow(callId, accountId, {
      held: "50",
      cost: "65",
      price_version: priceVersion,
    });
    await ledger.settle({ id: callId, accountId, costNanos, record });
    await ledger.close();
    const { receipt } = await log().getCall(byId(callId));
    expect(receipt?.holds.map(({ kind, held }) => [kind, held?.amountNanos])).toEqual([
      [HoldEventKind.HELD, 20n],
      [HoldEventKind.GROWN, 35n],
      [HoldEventKind.GROWN, 50n],
      [HoldEventKind.SETTLED, 0n],
    ]);
    const times = receipt?.holds.map(({ time }) => (time ? timestampMs(time) : 0)) ?? [];
    expect(times.slice(1)).toEqual(times.slice(1).toSorted((a, b) => a - b));
    expect(receipt).toMatchObject({
      amount: { amountNanos: 65n },
      shortfall: { amountNanos: 15n },
      entries: [{ amount: { amountNanos: -50n }, balanceAfter: { amountNanos: 0n } }],
    });
  });

  test("the receipt of a call whose process was declared dead shows the charge of its recovery, and the correction", async () => {
    const accountId = await billing.account(1_000n);
    const callId = newId();
    await billing.apply({ accountId, holds: [{ id: callId, amountNanos: 100n }] });
    const record = callRow(callId, accountId, { held: "100", price_version: priceVersion });
    const known = { ...record, input_tokens: 10, output_tokens: 0, cost: "30" };
    await billing.pool.query(
      "with kept as (insert into hold_checkpoint (hold_id, cost, record) values ($1, 30, $2)) " +
        "update open_hold set checkpointed = true where id = $1",
      [callId, JSON.stringify(known)],
    );
    await billing.age([callId], 1);
    await billing.pool.query("select ledger_recover_holds($1, $2)", [accountId, [callId]]);
    const lost = (await log().getCall(byId(callId))).receipt;
    expect(lost).toMatchObject({
      call: { ending: CallEnding.GATEWAY_LOST },
      lines: [{ unit: PriceUnit.INPUT, quantity: "10" }],
      amount: { amountNanos: 30n },
      recomputed: { amountNanos: 30n },
      holds: [{ held: { amountNanos: 100n } }, { kind: HoldEventKind.EXPIRED }],
    });
    await billing.apply({
      accountId,
      settles: [{ id: callId, costNanos, record: { ...record, cost: `${costNanos}` } }],
    });
    const { receipt } = await log().getCall(byId(callId));
    expect(receipt).toMatchObject({
      amount: { amountNanos: costNanos },
      recomputed: { amountNanos: costNanos },
      entries: [
        {
          kind: LedgerKind.CHARGE,
          amount: { amountNanos: -30n },
          balanceAfter: { amountNanos: 970n },
        },
        {
          kind: LedgerKind.LATE_SETTLEMENT,
          amount: { amountNanos: -35n },
          balanceBefore: { amountNanos: 970n },
          balanceAfter: { amountNanos: 935n },
        },
      ],
    });
  });

  test("the receipt of a refused or failed call shows that it was not charged", async () => {
    const accountId = await billing.account(50n);
    const callId = newId();
    await billing.apply({ accountId, holds: [{ id: callId, amountNanos: 20n }] });
    const record = callRow(callId, accountId, {
      held: "20",
      charged: false,
      price_version: priceVersion,
      // Its vendor takes something all the same.
      vendor_cost: "12",
    });
    await billing.apply({ accountId, settles: [{ id: callId, costNanos: 0n, record }] });
    const { receipt } = await log().getCall(byId(callId));
    expect(receipt).toMatchObject({
      charged: false,
      lines: [],
      entries: [],
      price: { input: "0.003" },
    });
    expect(receipt?.holds.map(({ kind }) => kind)).toEqual([
      HoldEventKind.HELD,
      HoldEventKind.RELEASED,
    ]);
  });

  test("R-AUTH-6: a session sees its own only, without the vendor's cost; the newest by request id", async () => {
    const [accountId, other] = [await billing.account(1_000n), await billing.account(1_000n)];
    await charge(accountId, 100n, "same");
    const newest = await charge(accountId, 100n, "same");
    const foreign = await charge(other, 100n, "same");
    const session = callRpcs(billing.pool, { kind: "session", accountId });
    const own = await session.getCall({ accountId, ...byRequest("same") });
    expect(own.receipt?.call?.callId).toBe(newest);
    expect(own.receipt?.vendorCost).toBeUndefined();
    expect((await log().getCall(byRequest("same"))).receipt?.call?.callId).toBe(foreign);
    const notFound = code(ErrorCode.NOT_FOUND);
    for (const request of [
      { accountId, ...byId(foreign) },
      { accountId: other, ...byId(foreign) },
      { accountId, ...byId(newId()) },
      { accountId, ...byRequest("none") },
      { accountId, ...byRequest("a\0b") },
    ]) {
      await expect(session.getCall(request)).rejects.toEqual(notFound);
    }
    const invalid = code(ErrorCode.INVALID_REQUEST);
    for (const request of [
      {},
      byRequest("same"),
      { accountId },
      { accountId, ...byId("x") },
      { accountId, ...byId("") },
      { accountId, ...byRequest("") },
    ]) {
      await expect(session.getCall(request)).rejects.toEqual(invalid);
    }
  });
});
