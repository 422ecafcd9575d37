import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DatedPrice, PriceConfig } from "../../../src/config/config.ts";
import { priceAt } from "../../../src/config/price.ts";
import {
  addMargin,
  nanosEach,
  parseDecimal,
  parseMargin,
} from "../../../src/cli/price-import/decimal.ts";
import { pricesWithMargin } from "../../../src/cli/price-import/customer-prices.ts";
import { isTokenUnit, priceUnits } from "../../../src/config/price-units.ts";
import { unitPrice } from "../../../src/config/unit-prices.ts";
import { formatUsd } from "../../../src/core/money.ts";

const nanos = fc.bigInt(0n, 10n ** 15n);
const margin = fc.bigInt(0n, 99_999_999n);

describe("the arithmetic of price import", () => {
  it("the arithmetic of price import rounds a price up to the next nano-dollar, and by less than one", () => {
    fc.assert(
      fc.property(nanos, margin, (cost, marginPpm) => {
        const price = addMargin(cost, marginPpm);
        const exact = cost * (1_000_000n + marginPpm);
        expect(price * 1_000_000n >= exact && (price - 1n) * 1_000_000n < exact).toBe(true);
        expect(price >= cost).toBe(true);
      }),
    );
  });

  it("the arithmetic of price import reads every amount that can be written as exactly that amount", () => {
    fc.assert(
      fc.property(nanos, (amount) => {
        const read = parseDecimal(formatUsd(amount));
        if (read === undefined || read === "negative") throw new Error("not read");
        expect(nanosEach(read, 1n)).toEqual({ nanos: amount, isRounded: false });
      }),
    );
  });

  it("the arithmetic of price import reads an exponent as the digits that it stands for", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 12n), fc.integer({ min: -9, max: 6 }), (value, exponent) => {
        const read = parseDecimal(`${value}e${exponent}`);
        if (read === undefined || read === "negative") throw new Error("not read");
        expect(nanosEach(read, 1n).nanos).toBe(value * 10n ** BigInt(9 + exponent));
      }),
    );
  });

  it("the arithmetic of price import never charges less for the parts of a price than the whole costs", () => {
    fc.assert(
      fc.property(nanos, fc.bigInt(1n, 3_600n), (amount, count) => {
        const usd = { numerator: amount, denominator: 1_000_000_000n };
        const { nanos: each, isRounded } = nanosEach(usd, count);
        expect(each * count >= amount && (each - 1n) * count < amount).toBe(true);
        expect(isRounded).toBe(each * count !== amount);
      }),
    );
  });

  it.each([
    ["20%", 200_000n],
    ["20", 200_000n],
    ["0", 0n],
    ["12.5%", 125_000n],
    ["0.0001%", 1n],
    ["150%", 1_500_000n],
  ])("the arithmetic of price import reads a margin of %s", (text, ppm) => {
    expect(parseMargin(text)).toBe(ppm);
  });

  it.each(["-1", "1e2", "0x10", "NaN", "Infinity", " 1", "1_000", ".5", "1.", ""])(
    "takes %j for no decimal number of a list or a margin",
    (text) => {
      expect(parseMargin(text)).toBeUndefined();
      if (text !== "1e2" && text !== "-1") expect(parseDecimal(text)).toBeUndefined();
    },
  );
});

const limits = [0, 1_000, 32_000, 200_000];
const dates = [-Infinity, 1_000, 2_000];

const tokens = {
  cachedInput: fc.option(nanos, { nil: undefined }),
  cacheWrite: fc.option(nanos, { nil: undefined }),
  reasoning: fc.option(nanos, { nil: undefined }),
};

const tier = fc.record({
  ...tokens,
  input: fc.option(nanos, { nil: undefined }),
  output: fc.option(nanos, { nil: undefined }),
});

const cost: fc.Arbitrary<PriceConfig> = fc
  .record({
    ...tokens,
    input: nanos,
    output: nanos,
    image: fc.constant(undefined),
    second: fc.constant(undefined),
    request: fc.option(nanos, { nil: undefined }),
    above: fc.subarray(limits.slice(1)),
    tiers: fc.array(tier, { minLength: 3, maxLength: 3 }),
  })
  .map(({ above, tiers, ...price }) => ({
    ...price,
    tiers: tiers
      .slice(0, above.length)
      .map((each, index) => ({ ...each, above: above[index] ?? 0 })),
  }));

const costs: fc.Arbitrary<readonly DatedPrice[]> = fc
  .tuple(fc.subarray(dates.slice(1)), fc.array(cost, { minLength: 3, maxLength: 3 }))
  .map(([later, prices]) =>
    [-Infinity, ...later].map((fromMs, index) => ({ fromMs, price: prices[index] as PriceConfig })),
  );

describe("the price of a model with a margin", () => {
  it("a proposed price is at each moment and length exactly the highest cost of a route with the margin, rounded up", () => {
    const routes = fc.array(costs, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(routes, margin, (each, marginPpm) => {
        const prices = pricesWithMargin(each, marginPpm);
        for (const timeMs of [0, 1_500, 2_500]) {
          const price = priceAt(prices, timeMs);
          for (const above of limits) {
            for (const unit of priceUnits) {
              if (above > 0 && !isTokenUnit(unit.key)) continue;
              const taken = each.map((list) => unitPrice(priceAt(list, timeMs), unit, above));
              const known = taken.filter((amount) => amount !== undefined);
              const asked = unitPrice(price, unit, above);
              if (known.length === 0) expect(asked).toBeUndefined();
              else expect(asked).toBe(addMargin(most(known), marginPpm));
            }
          }
        }
      }),
    );
  });
});

function most(amounts: readonly bigint[]): bigint {
  return amounts.reduce((a, b) => (a > b ? a : b));
}
