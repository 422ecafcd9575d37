/** Prices, usages and discounts for property tests. */
import * as fc from "fast-check";
import type { CallUsage } from "../../../../src/billing/prices/cost.ts";
import type { PriceConfig } from "../../../../src/config/config.ts";
import {
  type PriceUnit,
  priceUnits,
  tokenUnits,
  type UnitKey,
} from "../../../../src/config/price-units.ts";

const nanos = fc.option(fc.bigInt(0n, 10n ** 12n), { nil: undefined });
const pricesOf = <Key extends UnitKey>(units: readonly PriceUnit<Key>[]) =>
  Object.fromEntries(units.map(({ key }) => [key, nanos])) as Record<Key, typeof nanos>;
const tiers = fc
  .array(fc.record({ above: fc.integer({ min: 1, max: 1_000 }), ...pricesOf(tokenUnits) }), {
    maxLength: 3,
  })
  .map((list) => list.toSorted((a, b) => a.above - b.above))
  .map((list) => list.filter(({ above }, at) => above !== list[at - 1]?.above));
/** Any price. */
export const prices = fc
  .record({
    ...pricesOf(priceUnits),
    tiers,
  })
  .map((each): PriceConfig => (each.tiers.length > 0 ? each : { ...each, tiers: undefined }));
/** Any discount. */
export const discounts = fc.integer({ min: 0, max: 10_000 });
const tokens = fc.oneof(fc.nat(2_000), fc.nat(2 ** 31 - 1));
/** The usage of any call; no part exceeds its whole. */
export const calls = fc
  .record({
    inputTokens: tokens,
    outputTokens: tokens,
    cached: fc.double({ min: 0, max: 1, noNaN: true }),
    written: fc.double({ min: 0, max: 1, noNaN: true }),
    lasting: fc.double({ min: 0, max: 1, noNaN: true }),
    reasoned: fc.double({ min: 0, max: 1, noNaN: true }),
    heard: fc.double({ min: 0, max: 1, noNaN: true }),
    spoken: fc.double({ min: 0, max: 1, noNaN: true }),
    units: fc.record({
      characters: fc.nat(100_000),
      searches: fc.nat(20),
      webSearches: fc.nat(20),
      webFetches: fc.nat(20),
      codeExecutions: fc.nat(20),
      fileSearches: fc.nat(20),
      storedTokenHours: tokens,
    }),
    images: fc.nat(20),
    seconds: fc.nat(10_000_000).map((micros) => micros / 1_000_000),
  })
  .map(({ cached, written, lasting, reasoned, heard, spoken, units, ...call }): CallUsage => {
    const cachedInputTokens = Math.floor(call.inputTokens * cached);
    const cacheWriteTokens = Math.floor((call.inputTokens - cachedInputTokens) * written);
    const reasoningTokens = Math.floor(call.outputTokens * reasoned);
    const freshTokens = call.inputTokens - cachedInputTokens - cacheWriteTokens;
    return {
      ...call,
      ...units,
      cachedInputTokens,
      cacheWriteTokens,
      cacheWrite1hTokens: Math.floor(cacheWriteTokens * lasting),
      cacheWrite12hTokens: Math.floor(cacheWriteTokens * (1 - lasting) * spoken),
      reasoningTokens,
      audioInputTokens: Math.floor(freshTokens * heard),
      audioOutputTokens: Math.floor((call.outputTokens - reasoningTokens) * spoken),
      imageOutputTokens: Math.floor((call.outputTokens - reasoningTokens) * (1 - spoken) * heard),
    };
  });
