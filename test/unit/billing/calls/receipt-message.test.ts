/** Receipts made of what is stored: the same charge again, line by line. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PriceUnit } from "../../../../gen/uas/billing/v1/receipt_pb.ts";
import type { StoredCallRow } from "../../../../src/billing/message.ts";
import {
  type CanonicalPrice,
  canonicalPrice,
  parsePrice,
} from "../../../../src/billing/prices/price-form.ts";
import { callCost, type CallUsage } from "../../../../src/billing/prices/cost.ts";
import { receiptMessage } from "../../../../src/billing/calls/receipt-rpcs.ts";
import type { PriceConfig } from "../../../../src/config/config.ts";
import { rareUnits } from "../../../../src/config/price-units.ts";
import { calls, discounts, prices } from "../prices/any-price.ts";
import { callRow } from "./call-row.ts";
import { newId } from "../../../../src/core/uuid.ts";

const id = newId();

/** A row as the driver gives it. */
function stored(rest: Partial<StoredCallRow>): StoredCallRow {
  const row = callRow(id, id);
  return { ...row, second_micros: null, start_time: new Date(row.start_time), ...rest };
}

function charged(usage: CallUsage, price: PriceConfig, discountBp: number): StoredCallRow {
  return stored({
    input_tokens: usage.inputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    cache_write_tokens: usage.cacheWriteTokens,
    units: Object.fromEntries(rareUnits.map(({ name, usage: of }) => [name, usage[of] ?? 0])),
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens ?? 0,
    images: usage.images ?? null,
    second_micros: `${Math.round((usage.seconds ?? 0) * 1_000_000)}`,
    cost: callCost(price, usage, discountBp).toString(),
    held: "1",
    discount_bp: discountBp,
  });
}

function receiptOf(call: StoredCallRow, price?: PriceConfig) {
  const canonical = price && (JSON.parse(JSON.stringify(canonicalPrice(price))) as CanonicalPrice);
  const rows = { call, price: canonical, hold: undefined, steps: [], entries: [] };
  return receiptMessage(rows, false);
}

/** A decimal string in 10^-19. */
function exact(text: string): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  return BigInt(`${whole}${fraction.padEnd(19, "0")}`);
}

describe("a receipt", () => {
  test("R-MON-1: recomputed from stored price, usage and discount equals the charge, line by line", () => {
    fc.assert(
      fc.property(prices, calls, discounts, (price, usage, discountBp) => {
        const call = charged(usage, price, discountBp);
        const receipt = receiptOf(call, price);
        expect(receipt.charged).toBe(true);
        expect(receipt.recomputed).toEqual(receipt.amount);
        expect(receipt.amount?.amountNanos).toBe(BigInt(call.cost));
        const sum = receipt.lines.reduce((total, { amount }) => total + exact(amount), 0n);
        expect(exact(receipt.subtotal)).toBe(sum);
        expect((sum - exact(receipt.discount)) / 10_000_000_000n).toBe(BigInt(call.cost));
        for (const { quantity, price: each, per, amount } of receipt.lines) {
          const product = exact(quantity) * exact(each);
          expect(product).toBe(exact(amount) * BigInt(per) * 10n ** 19n);
        }
      }),
    );
  });

  test("a receipt shows quantities and prices in their own units, and the tier", () => {
    const price = parsePrice({
      input: "1000000000",
      output: "2000000000",
      image: "3000000",
      second: "400000000",
      request: "1",
      tiers: [{ above: "9", output: "5000000000" }],
    });
    const usage = {
      inputTokens: 10,
      cachedInputTokens: 4,
      cacheWriteTokens: 0,
      outputTokens: 3,
      images: 2,
      seconds: 2.5,
    };
    const receipt = receiptOf(charged(usage, price, 1_000), price);
    expect(receipt.tierAbove).toBe(9);
    expect(
      receipt.lines.map(({ unit, quantity, price: each, per, amount }) => [
        unit,
        quantity,
        each,
        per,
        amount,
      ]),
    ).toEqual([
      [PriceUnit.INPUT, "6", "1", 1_000_000, "0.000006"],
      [PriceUnit.CACHED_INPUT, "4", "1", 1_000_000, "0.000004"],
      [PriceUnit.OUTPUT, "3", "5", 1_000_000, "0.000015"],
      [PriceUnit.IMAGE, "2", "0.003", 1, "0.006"],
      [PriceUnit.SECOND, "2.5", "0.4", 1, "1"],
      [PriceUnit.REQUEST, "1", "0.000000001", 1, "0.000000001"],
    ]);
    expect(receipt).toMatchObject({
      subtotal: "1.006025001",
      discount: "0.1006025001",
      amount: { amountNanos: 905_422_500n },
      price: { tiers: [{ above: 9, output: "5" }] },
    });
  });

  test("the receipt of a call that was not charged has no lines, whatever the call used", () => {
    const price = parsePrice({ input: "1000000000", request: "5" });
    const none = {
      charged: false,
      lines: [],
      subtotal: "0",
      discount: "0",
      recomputed: { amountNanos: 0n },
    };
    const free = { held: "9", cost: "0" };
    expect(receiptOf(stored({ ...free, charged: false }), price)).toMatchObject(none);
    // Records of older versions do not say whether they were charged.
    expect(receiptOf(stored({ ...free, charged: null }), price)).toMatchObject(none);
    // Its hold had never been made: the ledger charged nothing.
    expect(receiptOf(stored({ held: "0", cost: "0", charged: true }), price)).toMatchObject(none);
    expect(receiptOf(stored({ held: "0", cost: "0", charged: false }))).toMatchObject(none);
    const old = stored({ held: "9", cost: "10005", charged: null, discount_bp: null });
    expect(receiptOf(old, price)).toMatchObject({
      charged: true,
      recomputed: { amountNanos: 10_005n },
    });
    const unknown = receiptOf(old);
    expect([unknown.charged, unknown.lines, unknown.recomputed]).toEqual([true, [], undefined]);
  });
});

test("operators see the credential and the possible cost of a failed attempt, customers do not", () => {
  const attempt = { vendor: "a", model: "x", error_code: "upstream_error", duration_ms: 7 };
  const call = stored({
    attempts: [{ ...attempt, credential: "KEY_B", vendor_cost: "1500" }, attempt],
  });
  const rows = { call, price: undefined, hold: undefined, steps: [], entries: [] };
  const seen = (isOperator: boolean) =>
    receiptMessage(rows, isOperator).call?.attempts.map((each) => [
      each.vendorModel,
      each.credential,
      each.vendorCost?.amountNanos,
    ]);
  expect(seen(true)).toEqual([
    ["x", "KEY_B", 1_500n],
    ["x", "", undefined],
  ]);
  expect(seen(false)).toEqual([
    ["x", "", undefined],
    ["x", "", undefined],
  ]);
});
