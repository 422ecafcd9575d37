import { create } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UsageSchema } from "../../gen/uas/type/v1/usage_pb.ts";
import {
  callCost,
  canonicalPrice,
  holdAmount,
  parsePrice,
  priceVersion,
} from "../../src/billing/price.ts";
import type { PriceConfig } from "../../src/config/config.ts";
import { parseUsd } from "../../src/money.ts";

/** Prices in USD, as the configuration writes them. */
function price(usd: Partial<Record<keyof PriceConfig, string>>): PriceConfig {
  const nanos = (member: keyof PriceConfig) => parseUsd(usd[member] ?? "none");
  return {
    input: nanos("input"),
    cachedInput: nanos("cachedInput"),
    cacheWrite: nanos("cacheWrite"),
    output: nanos("output"),
    image: nanos("image"),
    second: nanos("second"),
    request: nanos("request"),
  };
}

const usage = (
  counts: Partial<
    Record<"inputTokens" | "cachedInputTokens" | "cacheWriteTokens" | "outputTokens", number>
  >,
) => create(UsageSchema, counts);

describe("R-MON-1: the cost of a call", () => {
  const mini = price({ input: "0.25", cachedInput: "0.025", output: "2.00" });

  test("charges input without its cached part, the cached part at its own price, and output", () => {
    const used = usage({ inputTokens: 1_000, cachedInputTokens: 400, outputTokens: 100 });
    // 600 × 250 + 400 × 25 + 100 × 2000 nano-USD.
    expect(callCost(mini, used)).toBe(360_000n);
  });

  test("cached and written tokens default to the price of input", () => {
    const plain = price({ input: "1", output: "2" });
    const used = usage({ inputTokens: 1_000, cachedInputTokens: 400, cacheWriteTokens: 300 });
    expect(callCost(plain, used)).toBe(1_000_000n);
    const dear = price({ input: "1", cacheWrite: "1.25", cachedInput: "0.1" });
    expect(callCost(dear, used)).toBe(300n * 1_000n + 300n * 1_250n + 400n * 100n);
  });

  test("rounds once, down", () => {
    // 3 × 0.0025 USD per 1 M = 7.5 nano-USD; each alone would be 2.5.
    const tiny = price({ input: "0.0025", output: "0.0025" });
    expect(callCost(tiny, usage({ inputTokens: 2, outputTokens: 1 }))).toBe(7n);
    expect(callCost(tiny, usage({}))).toBe(0n);
  });

  test("adds the price of a request once, and units that are not tokens", () => {
    const media = price({ request: "0.01", image: "0.003", second: "0.40" });
    expect(callCost(media, usage({}))).toBe(10_000_000n);
    expect(callCost(media, usage({}), { images: 4, seconds: 2.5 })).toBe(1_022_000_000n);
  });

  test("nonsense of a vendor is never less than nothing", () => {
    const used = usage({
      inputTokens: 10,
      cachedInputTokens: 50,
      cacheWriteTokens: -5,
      outputTokens: -1,
    });
    expect(callCost(mini, used)).toBe((50n * 25_000_000n) / 1_000_000n);
  });

  test("the hold covers every way a call can go, rounded up", () => {
    const nanos = fc.option(fc.bigInt(0n, 10n ** 12n), { nil: undefined });
    const prices = fc.record({
      input: nanos,
      cachedInput: nanos,
      cacheWrite: nanos,
      output: nanos,
      image: nanos,
      second: nanos,
      request: nanos,
    });
    const tokens = fc.nat(2 ** 31 - 1);
    fc.assert(
      fc.property(
        prices,
        tokens,
        tokens,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (p, i, o, share) => {
          const cached = Math.floor(i * share);
          const used = usage({
            inputTokens: i,
            cachedInputTokens: cached,
            cacheWriteTokens: Math.floor((i - cached) * share),
            outputTokens: o,
          });
          const held = holdAmount({ price: p, inputTokens: i, outputTokens: o });
          expect(held).toBeGreaterThanOrEqual(callCost(p, used));
          expect(callCost(p, used)).toBeGreaterThanOrEqual(0n);
        },
      ),
    );
    expect(holdAmount({ price: price({ output: "0.0025" }), outputTokens: 1 })).toBe(3n);
  });
});

describe("R-MON-1: the version of a price", () => {
  test("is its content: 16 digits, equal for equal prices, whatever the order of members", () => {
    const one = price({ input: "0.25", output: "2" });
    const two = Object.fromEntries(Object.entries(one).toReversed()) as unknown as PriceConfig;
    expect(priceVersion(one)).toMatch(/^[0-9a-f]{16}$/);
    expect(priceVersion(two)).toBe(priceVersion(one));
    // It is stored for ever: another algorithm would be another price to old records.
    expect(priceVersion(one)).toBe("0e19a450820bfe95");
  });

  test("tells free from not charged, and each member from the others", () => {
    const versions = [{}, { input: "0" }, { output: "0" }, { input: "1" }, { output: "1" }].map(
      (p) => priceVersion(price(p)),
    );
    expect(new Set(versions).size).toBe(versions.length);
  });

  test("the stored form gives the price back", () => {
    const full = price({ input: "9.999999999", cachedInput: "0", output: "2", second: "0.4" });
    expect(parsePrice(canonicalPrice(full))).toEqual(full);
  });
});
