import { create } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UsageSchema } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { callCost, holdAmount, priceLines, tierOf } from "../../../../src/billing/prices/cost.ts";
import {
  type CanonicalPrice,
  canonicalPrice,
  parsePrice,
  priceVersion,
} from "../../../../src/billing/prices/price-form.ts";
import type { PriceConfig, PriceTier } from "../../../../src/config/config.ts";
import { parseUsd } from "../../../../src/core/money.ts";
import { calls, discounts, prices } from "./any-price.ts";

/** Prices in USD, as the configuration writes them. */
function price(usd: Partial<Record<Exclude<keyof PriceConfig, "tiers">, string>>): PriceConfig {
  const nanos = (member: Exclude<keyof PriceConfig, "tiers">) => parseUsd(usd[member] ?? "none");
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

  test("the cost of a call charges input without its cached part, the cached part at its own price, and output", () => {
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

  test("R-MON-13: tokens written to the cache for an hour have a separate price", () => {
    const dear = { ...price({ input: "1", cacheWrite: "1.25" }), cacheWrite1h: 2_000_000_000n };
    const used = {
      ...usage({ inputTokens: 1_000, cacheWriteTokens: 300 }),
      cacheWrite1hTokens: 100,
    };
    expect(callCost(dear, used)).toBe(700n * 1_000n + 200n * 1_250n + 100n * 2_000n);
    expect(priceLines(dear, used).map(({ unit, quantity }) => [unit, quantity])).toEqual([
      ["input", 700n],
      ["cacheWrite", 200n],
      ["cacheWrite1h", 100n],
    ]);
    // Without one they are cache writes as the others, and no more than those.
    expect(callCost(price({ input: "1", cacheWrite: "1.25" }), used)).toBe(
      700n * 1_000n + 300n * 1_250n,
    );
    expect(callCost(dear, { ...used, cacheWrite1hTokens: 9_999 })).toBe(
      700n * 1_000n + 300n * 2_000n,
    );
    expect(holdAmount({ price: dear, inputTokens: 10 })).toBe(10n * 2_000n);
  });

  test("R-MON-1: the cost of a call is rounded once, down", () => {
    // 3 × 0.0025 USD per 1 M = 7.5 nano-USD; each alone would be 2.5.
    const tiny = price({ input: "0.0025", output: "0.0025" });
    expect(callCost(tiny, usage({ inputTokens: 2, outputTokens: 1 }))).toBe(7n);
    expect(callCost(tiny, usage({}))).toBe(0n);
  });

  test("the cost of a call adds the price of a request once, and of units other than tokens", () => {
    const media = price({ request: "0.01", image: "0.003", second: "0.40" });
    expect(callCost(media, usage({}))).toBe(10_000_000n);
    expect(callCost(media, { ...usage({}), images: 4, seconds: 2.5 })).toBe(1_022_000_000n);
  });

  test("the cost of a call never falls below zero, whatever a vendor reports", () => {
    const used = usage({
      inputTokens: 10,
      cachedInputTokens: 50,
      cacheWriteTokens: -5,
      outputTokens: -1,
    });
    expect(callCost(mini, used)).toBe((50n * 25_000_000n) / 1_000_000n);
  });

  test("audio is part of input and output, and has the price of text unless it has a separate price", () => {
    const tokens = { inputTokens: 100, cachedInputTokens: 40, outputTokens: 50 };
    const used = { ...usage(tokens), audioInputTokens: 90, audioOutputTokens: 30 };
    expect(callCost(mini, used)).toBe(callCost(mini, usage(tokens)));
    const audible = { ...mini, audioInput: 10_000_000_000n, audioOutput: 20_000_000_000n };
    expect(priceLines(audible, used).map(({ unit, quantity }) => [unit, quantity])).toEqual([
      ["cachedInput", 40n],
      ["audioInput", 60n],
      ["output", 20n],
      ["audioOutput", 30n],
    ]);
    // Only what can be audio is held at its price.
    const text = { price: audible, inputTokens: 10, outputTokens: 10 };
    expect(holdAmount(text)).toBe(holdAmount({ ...text, price: mini }));
    expect(holdAmount({ ...text, hasAudioInput: true, hasAudioOutput: true })).toBe(
      10n * 10_000n + 10n * 20_000n,
    );
  });

  test("each call of a vendor's tool, character and search has its own price", () => {
    const tools = { ...mini, webSearch: 10_000_000n, codeExecution: 30_000_000n, search: 2n };
    const spoken = { ...tools, character: 15_000n };
    const units = { webSearches: 3, codeExecutions: 1, webFetches: 9, characters: 1_000 };
    expect(callCost(spoken, { ...usage({}), ...units })).toBe(60_000_000n + 15_000_000n);
    expect(holdAmount({ price: spoken, ...units, searches: 2 })).toBe(75_000_004n);
  });

  test("reasoning is part of the output, and has its own price where one is given", () => {
    const used = { ...usage({ outputTokens: 100 }), reasoningTokens: 60 };
    expect(callCost(mini, used)).toBe(100n * 2_000n);
    const thinking = { ...mini, reasoning: 500_000_000n };
    expect(callCost(thinking, used)).toBe(40n * 2_000n + 60n * 500n);
    // A vendor that reports more reasoning than output has made no more than its output.
    expect(callCost(thinking, { ...used, reasoningTokens: 1_000 })).toBe(100n * 500n);
    expect(callCost(thinking, { ...used, reasoningTokens: -1 })).toBe(100n * 2_000n);
  });

  test("a discount comes off before the one rounding", () => {
    const tiny = price({ input: "0.001" });
    expect(callCost(tiny, usage({ inputTokens: 3 }), 0)).toBe(3n);
    expect(callCost(tiny, usage({ inputTokens: 3 }), 1)).toBe(2n);
    expect(callCost(tiny, usage({ inputTokens: 30_000 }), 1)).toBe(29_997n);
    expect(callCost(mini, usage({ outputTokens: 1_000 }), 1_250)).toBe(1_750_000n);
    expect(callCost(mini, usage({ outputTokens: 1_000 }), 10_000)).toBe(0n);
  });
});

describe("tiers by the number of input tokens", () => {
  const long: PriceConfig = {
    ...price({ input: "1", cachedInput: "0.1", output: "10" }),
    tiers: [
      { above: 200, ...price({ input: "2", cachedInput: "0.2", output: "15" }) },
      { above: 500, ...price({ input: "4" }) },
    ],
  };

  test("price the whole call, from the first token over their limit", () => {
    const used = (inputTokens: number) => usage({ inputTokens, outputTokens: 10 });
    expect(callCost(long, used(200))).toBe(200n * 1_000n + 100_000n);
    expect(callCost(long, used(201))).toBe(201n * 2_000n + 150_000n);
    expect(callCost(long, used(500))).toBe(500n * 2_000n + 150_000n);
    expect(tierOf(long, 200)).toBeUndefined();
    expect(tierOf(long, 501)?.above).toBe(500);
  });

  test("take unnamed prices from the base price, not from the tier before", () => {
    const used = usage({ inputTokens: 600, cachedInputTokens: 100, outputTokens: 10 });
    expect(callCost(long, used)).toBe(500n * 4_000n + 100n * 100n + 10n * 10_000n);
    // Prices that default to input follow the input of the tier.
    const plain = { ...price({ input: "1" }), tiers: [{ above: 9, ...price({ input: "3" }) }] };
    expect(callCost(plain, usage({ inputTokens: 10, cachedInputTokens: 10 }))).toBe(30_000n);
  });

  test("are held at the most expensive tier that the estimate reaches", () => {
    const held = (inputTokens: number) =>
      holdAmount({ price: long, inputTokens, outputTokens: 10 });
    expect(held(200)).toBe(200n * 1_000n + 100_000n);
    expect(held(201)).toBe(201n * 2_000n + 150_000n);
    // The tier of 501 tokens has the cheaper output: a reply of 500 may still need the other.
    const odd = { ...long, tiers: [...(long.tiers ?? []).slice(0, 1), tier(500, "1", "1")] };
    expect(holdAmount({ price: odd, inputTokens: 501, outputTokens: 10 })).toBe(
      501n * 2_000n + 150_000n,
    );
  });
});

function tier(above: number, input: string, output: string): PriceTier {
  return { above, ...price({ input, output }) };
}

describe("R-MON-1: whatever the price, the usage and the discount", () => {
  test("the hold covers the call, rounded up", () => {
    fc.assert(
      fc.property(prices, calls, discounts, fc.nat(5), (p, used, discountBp, more) => {
        const inputTokens = used.inputTokens + more;
        const audio = { hasAudioInput: true, hasAudioOutput: true, hasImageOutput: true };
        const estimate = { ...used, ...audio, inputTokens, discountBp };
        const cost = callCost(p, used, discountBp);
        expect(holdAmount({ price: p, ...estimate })).toBeGreaterThanOrEqual(cost);
        expect(cost).toBeGreaterThanOrEqual(0n);
      }),
    );
    expect(holdAmount({ price: price({ output: "0.0025" }), outputTokens: 1 })).toBe(3n);
  });

  test("the lines add up to the amount, each quantity × price", () => {
    fc.assert(
      fc.property(prices, calls, discounts, (p, used, discountBp) => {
        const lines = priceLines(p, used);
        for (const line of lines)
          expect(line.amountMillionths).toBe(line.quantity * line.priceNanos);
        expect(new Set(lines.map(({ unit }) => unit)).size).toBe(lines.length);
        const sum = lines.reduce((total, { amountMillionths }) => total + amountMillionths, 0n);
        const amount = (sum * BigInt(10_000 - discountBp)) / 10_000_000_000n;
        expect(callCost(p, used, discountBp)).toBe(amount);
      }),
    );
  });

  test("more output never costs less, nor does a smaller discount", () => {
    fc.assert(
      fc.property(prices, calls, discounts, fc.nat(1_000), (p, used, discountBp, more) => {
        const cost = callCost(p, used, discountBp);
        const longer = { ...used, outputTokens: used.outputTokens + more };
        expect(callCost(p, longer, discountBp)).toBeGreaterThanOrEqual(cost);
        const smaller = Math.max(0, discountBp - more);
        expect(callCost(p, used, smaller)).toBeGreaterThanOrEqual(cost);
      }),
    );
  });

  test("the stored price makes the same charge, to the nano-USD", () => {
    fc.assert(
      fc.property(prices, calls, discounts, (p, used, discountBp) => {
        const stored = JSON.parse(JSON.stringify(canonicalPrice(p))) as CanonicalPrice;
        const again = parsePrice(stored);
        expect(callCost(again, used, discountBp)).toBe(callCost(p, used, discountBp));
        expect(again).toEqual(p);
        expect(priceVersion(again)).toBe(priceVersion(p));
      }),
    );
  });
});

describe("R-MON-1: the version of a price", () => {
  test("the version of a price is its content: 16 digits, equal for equal prices, whatever the order of members", () => {
    const one = price({ input: "0.25", output: "2" });
    const two = Object.fromEntries(Object.entries(one).toReversed()) as unknown as PriceConfig;
    expect(priceVersion(one)).toMatch(/^[0-9a-f]{16}$/);
    expect(priceVersion(two)).toBe(priceVersion(one));
    // It is stored permanently: another algorithm would be another price to old records.
    expect(priceVersion(one)).toBe("0e19a450820bfe95");
  });

  test("a unit that is added to the price form does not change the versions of prices without it", () => {
    const one = price({ input: "0.25", output: "2" });
    expect(priceVersion({ ...one, reasoning: undefined, tiers: undefined })).toBe(
      "0e19a450820bfe95",
    );
    expect(priceVersion({ ...one, tiers: [] })).toBe("0e19a450820bfe95");
    const versions = [
      { ...one, reasoning: 2_000_000_000n },
      { ...one, tiers: [tier(9, "1", "2")] },
      { ...one, tiers: [tier(10, "1", "2")] },
      { ...one, tiers: [tier(9, "1", "2"), tier(10, "1", "2")] },
      one,
    ].map(priceVersion);
    expect(new Set(versions).size).toBe(versions.length);
  });

  test("distinguishes free from not charged, and every unit from the others", () => {
    const versions = [{}, { input: "0" }, { output: "0" }, { input: "1" }, { output: "1" }].map(
      (p) => priceVersion(price(p)),
    );
    expect(new Set(versions).size).toBe(versions.length);
  });
});
