/** What a call costs: pure arithmetic in nano-USD. */
import { createHash } from "node:crypto";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { PriceConfig } from "../config/config.ts";

/** The counts of a usage that cost money. */
export type TokenUsage = Pick<
  Usage,
  "inputTokens" | "cachedInputTokens" | "cacheWriteTokens" | "outputTokens"
>;

/** Units that are not tokens. */
export interface UnitUsage {
  /** Pictures made. Default 0. */
  readonly images?: number;
  /** Seconds of audio or video made; a fraction counts to the microsecond. Default 0. */
  readonly seconds?: number;
}

/** What {@link holdAmount} needs. */
export interface HoldEstimate extends UnitUsage {
  readonly price: PriceConfig;
  /** The most tokens that can be read: each at the dearest price of input. Default 0. */
  readonly inputTokens?: number;
  /** The most tokens that can be made. Default 0. */
  readonly outputTokens?: number;
}

/** Prices of tokens are per so many. */
const tokensPerPrice = 1_000_000n;

/** Seconds are counted in so many parts, which makes them as exact as tokens. */
const secondParts = 1_000_000;

/** The members of a price in the order of its canonical form. */
const members = [
  "input",
  "cachedInput",
  "cacheWrite",
  "output",
  "image",
  "second",
  "request",
] as const satisfies readonly (keyof PriceConfig)[];

/**
 * The cost of a call in nano-USD: one rounding, down. Cached and written tokens are part of the input and
 * are charged at their own prices, which default to that of input; `request` is added once.
 */
export function callCost(price: PriceConfig, usage: TokenUsage, units: UnitUsage = {}): bigint {
  return millionths(price, usage, units) / tokensPerPrice;
}

/** The most that a call can cost in nano-USD, rounded up: what is held before a vendor is asked. */
export function holdAmount(estimate: HoldEstimate): bigint {
  const { price, inputTokens = 0, outputTokens = 0 } = estimate;
  const { input = 0n, cachedInput = input, cacheWrite = input } = price;
  const dearest = [input, cachedInput, cacheWrite].reduce((a, b) => (a > b ? a : b));
  const usage = { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens };
  const sum = millionths({ ...price, input: dearest }, usage, estimate);
  return (sum + tokensPerPrice - 1n) / tokensPerPrice;
}

/** The content hash of a price: 16 hexadecimal digits. Equal prices have equal versions, everywhere. */
export function priceVersion(price: PriceConfig): string {
  return createHash("sha256")
    .update(JSON.stringify(canonicalPrice(price)))
    .digest("hex")
    .slice(0, 16);
}

/** A price as it is stored: decimal digits of nano-USD, members that are not charged left out. */
export function canonicalPrice(price: PriceConfig): Record<string, string> {
  const canonical: Record<string, string> = {};
  for (const member of members) {
    const nanos = price[member];
    if (nanos !== undefined) canonical[member] = nanos.toString();
  }
  return canonical;
}

/** The price back from its stored form. */
export function parsePrice(canonical: Readonly<Record<string, string>>): PriceConfig {
  const read = (member: keyof PriceConfig): bigint | undefined => {
    const digits = canonical[member];
    return digits === undefined ? undefined : BigInt(digits);
  };
  return {
    input: read("input"),
    cachedInput: read("cachedInput"),
    cacheWrite: read("cacheWrite"),
    output: read("output"),
    image: read("image"),
    second: read("second"),
    request: read("request"),
  };
}

/** The exact cost in millionths of a nano-USD. */
function millionths(price: PriceConfig, usage: TokenUsage, units: UnitUsage): bigint {
  const { input = 0n, cachedInput = input, cacheWrite = input, output = 0n } = price;
  const { image = 0n, second = 0n, request = 0n } = price;
  const plain = usage.inputTokens - usage.cachedInputTokens - usage.cacheWriteTokens;
  const seconds = BigInt(Math.round((units.seconds ?? 0) * secondParts));
  return (
    count(plain) * input +
    count(usage.cachedInputTokens) * cachedInput +
    count(usage.cacheWriteTokens) * cacheWrite +
    count(usage.outputTokens) * output +
    seconds * second +
    (count(units.images ?? 0) * image + request) * tokensPerPrice
  );
}

/** A vendor may report nonsense: less than nothing is nothing. */
function count(value: number): bigint {
  return value > 0 ? BigInt(Math.trunc(value)) : 0n;
}
