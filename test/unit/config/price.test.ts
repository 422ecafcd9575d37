/** The price of a model at a time. */
import { expect, it } from "vitest";
import type { DatedPrice } from "../../../src/config/config.ts";
import { priceAt } from "../../../src/config/price.ts";
import { priceDefault } from "../../support/gateway.ts";

function dated(fromMs: number): DatedPrice {
  return { fromMs, price: { ...priceDefault, request: BigInt(Math.max(fromMs, 0)) } };
}

function requestPrice(prices: readonly DatedPrice[], timeMs: number): bigint | undefined {
  return priceAt(prices, timeMs).request;
}

it("the last price that has begun applies, from its very millisecond", () => {
  const prices = [dated(-Infinity), dated(1_000), dated(2_000)];
  const at = [-5, 999, 1_000, 1_999, 2_000, Number.MAX_SAFE_INTEGER];
  expect(at.map((timeMs) => requestPrice(prices, timeMs))).toEqual([
    0n,
    0n,
    1_000n,
    1_000n,
    2_000n,
    2_000n,
  ]);
});

it("a model always has a price: the first one where the clock was set back before it", () => {
  expect(requestPrice([dated(-Infinity)], 0)).toBe(0n);
  expect(requestPrice([dated(1_000), dated(2_000)], 1)).toBe(1_000n);
  expect(() => priceAt([], 1)).toThrow(RangeError);
});
