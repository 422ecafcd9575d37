import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { HoldEventKind, PriceUnit } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import { run, runJson } from "./support.ts";

const callId = "01890000-0000-7000-8000-000000000002";
const time = "2026-11-21T09:30:00.000Z";
const createTime = timestampFromDate(new Date(time));
const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });
const call = {
  callId,
  requestId: "r",
  ending: CallEnding.COMPLETED,
  discountBp: 1_250,
  priceVersion: "abc",
};
const full = {
  call,
  charged: true,
  price: { input: "1", tiers: [{ above: 5, input: "2" }] },
  tierAbove: 5,
  lines: [
    { unit: PriceUnit.CACHED_INPUT, quantity: "8", price: "2", per: 1_000_000, amount: "0.000016" },
    { unit: PriceUnit.REQUEST, quantity: "1", price: "0.1", per: 1, amount: "0.1" },
  ],
  subtotal: "0.100016",
  discount: "0.012502",
  amount: usd(87_514_000n),
  recomputed: usd(87_514_000n),
  shortfall: usd(4_000n),
  holds: [
    { kind: HoldEventKind.HELD, held: usd(100_000_000n), time: createTime },
    { kind: HoldEventKind.SETTLED, held: usd(0n), time: createTime },
  ],
  entries: [
    {
      transactionId: callId,
      kind: LedgerKind.CHARGE,
      amount: usd(-87_510_000n),
      balanceBefore: usd(87_510_000n),
      balanceAfter: usd(0n),
      createTime,
    },
    {
      transactionId: "t",
      kind: LedgerKind.REFUND,
      amount: usd(1n),
      createTime,
      reference: "sorry",
    },
  ],
  vendorCost: usd(50_000_000n),
};
const world = (receipt: object) => ({
  routes: (router: ConnectRouter) =>
    void router.service(CallService, {
      listCalls: () => ({ calls: [call] }),
      getCall: (request) => ({ call, ...(request.call.value === callId && { receipt }) }),
    }),
});

it("calls show prints the receipt beside the record", async () => {
  const { json } = await runJson(["calls", "show", "r"], world(full));
  expect(json).toMatchObject({
    requestId: "r",
    receipt: {
      charged: true,
      lines: [
        { unit: "cached_input", quantity: "8", price: "2", per: 1_000_000, amount: "0.000016" },
        { unit: "request", quantity: "1", price: "0.1", per: 1, amount: "0.1" },
      ],
      subtotal: "0.100016",
      discountBp: 1_250,
      discount: "0.012502",
      amount: "0.087514",
      recomputed: "0.087514",
      shortfall: "0.000004",
      priceVersion: "abc",
      price: { units: { input: "1" }, tiers: [{ above: 5, units: { input: "2" } }] },
      tierAbove: 5,
      holds: [
        { event: "held", held: "0.1", time },
        { event: "settled", held: "0", time },
      ],
      entries: [
        { kind: "charge", amount: "-0.08751", balanceBefore: "0.08751", balanceAfter: "0" },
        { kind: "refund", balanceBefore: null, balanceAfter: null, reference: "sorry" },
      ],
      vendorCost: "0.05",
    },
  });
});

it("calls show prints tables for people", async () => {
  const { out } = await run(["calls", "show", "r"], world(full));
  const [, ...tables] = out.trimEnd().split("\n\n");
  expect(tables.map((text) => text.split("\n"))).toEqual([
    [
      "amount        0.087514",
      "recomputed    0.087514",
      "priceVersion  abc",
      "tierAbove     5",
      "shortfall     0.000004",
      "vendorCost    0.05",
    ],
    [
      "LINE             QUANTITY  PRICE            USD",
      "cached_input     8         2 per 1M tokens  0.000016",
      "request          1         0.1 per request  0.1",
      "subtotal                                    0.100016",
      "discount 12.5 %                             -0.012502",
      "amount                                      0.087514",
    ],
    ["TIME                      HOLD     HELD", `${time}  held     0.1`, `${time}  settled  0`],
    [
      "TIME                      MOVED   USD          BEFORE   AFTER  REFERENCE",
      `${time}  charge  -0.08751     0.08751  0      -`,
      `${time}  refund  0.000000001  -        -      sorry`,
    ],
  ]);
});

it("of a call that was refused the receipt is short", async () => {
  const refused = { call: { ...call, discountBp: 0, priceVersion: "" }, amount: usd(0n) };
  const { out } = await run(["calls", "show", "r"], world(refused));
  const [, ...tables] = out.trimEnd().split("\n\n");
  expect(tables).toEqual(["amount        0\nrecomputed    -\npriceVersion  -"]);
  const { json } = await runJson(["calls", "show", "r"], world(refused));
  expect(json).toMatchObject({
    receipt: { charged: false, lines: [], holds: [], entries: [], price: null, tierAbove: null },
  });
});
