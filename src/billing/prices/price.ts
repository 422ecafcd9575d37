/** What a call costs: pure arithmetic in nano-USD. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { PriceConfig, PriceTier, TokenPrices } from "../../config/config.ts";

/** The counts of a usage that cost money. */
export type TokenUsage = Pick<
  Usage,
  "inputTokens" | "cachedInputTokens" | "cacheWriteTokens" | "outputTokens"
> &
  Partial<Pick<Usage, "reasoningTokens">>;

/** Units that are not tokens. */
export interface UnitUsage {
  /** Pictures made. Default 0. */
  readonly images?: number | undefined;
  /** Seconds of audio or video made; a fraction counts to the microsecond. Default 0. */
  readonly seconds?: number | undefined;
}

/** All that a call can be charged for. */
export type CallUsage = TokenUsage & UnitUsage;

/** What {@link holdAmount} needs. */
export interface HoldEstimate extends UnitUsage {
  readonly price: PriceConfig;
  /** The most tokens that can be read: each at the dearest price of input. Default 0. */
  readonly inputTokens?: number;
  /** The most tokens that can be made. Default 0. */
  readonly outputTokens?: number;
  /** See {@link callCost}. Default 0. */
  readonly discountBp?: number;
}

/** What calls are charged by, in the order of a receipt. */
export const priceUnits = [
  "input",
  "cachedInput",
  "cacheWrite",
  "output",
  "reasoning",
  "image",
  "second",
  "request",
] as const;

/** One of {@link priceUnits}. */
export type PriceUnit = (typeof priceUnits)[number];

/** The units whose prices are per 1,000,000. */
export const tokenUnits: ReadonlySet<PriceUnit> = new Set([
  "input",
  "cachedInput",
  "cacheWrite",
  "output",
  "reasoning",
]);

/** One line of a receipt: quantity × price = amount, exactly. */
export interface PriceLine {
  readonly unit: PriceUnit;
  /** Tokens; of the other units, millionths. */
  readonly parts: bigint;
  /** Nano-USD per million parts. */
  readonly priceNanos: bigint;
  /** In millionths of a nano-USD. */
  readonly amountParts: bigint;
}

/** Prices are per so many parts: a million tokens, or the millionths of one picture, second or request. */
export const partsPerPrice = 1_000_000n;

/** A discount is counted in hundredths of a percent: so many are all of it. */
export const discountBpMax = 10_000;

const wholeBp = BigInt(discountBpMax);

/**
 * The cost of a call in nano-USD: one rounding, down, after the discount. Cached and written tokens are part
 * of the input, and reasoning is part of the output; each is charged at its own price, which defaults to
 * that of the whole; `request` is added once.
 *
 * @param discountBp what the account does not pay, in hundredths of a percent, 0 to 10,000. Default 0
 */
export function callCost(price: PriceConfig, usage: CallUsage, discountBp = 0): bigint {
  const parts = costParts(tokenPrices(price, usage.inputTokens), price, usage);
  return (parts * payable(discountBp)) / (partsPerPrice * wholeBp);
}

/**
 * The most that a call can cost in nano-USD, rounded up: what is held before a vendor is asked. Of the
 * tiers that so many tokens can reach, the dearest counts.
 */
export function holdAmount(estimate: HoldEstimate): bigint {
  const { price, inputTokens = 0, discountBp = 0 } = estimate;
  let parts = dearestParts(price, estimate);
  for (const tier of price.tiers ?? []) {
    if (inputTokens <= tier.above) break;
    const reached = dearestParts(withTier(price, tier), estimate);
    if (reached > parts) parts = reached;
  }
  const scale = partsPerPrice * wholeBp;
  return (parts * payable(discountBp) + scale - 1n) / scale;
}

/** The tier that a call which reads so many tokens is priced at; `undefined`: the price's own. */
export function tierOf({ tiers = [] }: PriceConfig, inputTokens: number): PriceTier | undefined {
  return tiers.findLast(({ above }) => inputTokens > above);
}

/**
 * What {@link callCost} adds up, line by line and without the discount. Units that were not used or are not
 * charged have none.
 */
export function priceLines(price: PriceConfig, usage: CallUsage): PriceLine[] {
  const lines: PriceLine[] = [];
  const tokens = tokenPrices(price, usage.inputTokens);
  eachPart(tokens, price, usage, (unit, parts, priceNanos) => {
    lines.push({ unit, parts, priceNanos, amountParts: parts * priceNanos });
  });
  return lines;
}

/** The prices of tokens that count for a call: those of its tier, the others as in its price. */
function tokenPrices(price: PriceConfig, inputTokens: number): TokenPrices {
  if (price.tiers === undefined) return price;
  const tier = tierOf(price, inputTokens);
  return tier === undefined ? price : withTier(price, tier);
}

function withTier(price: PriceConfig, tier: PriceTier): PriceConfig {
  return {
    ...price,
    input: tier.input ?? price.input,
    cachedInput: tier.cachedInput ?? price.cachedInput,
    cacheWrite: tier.cacheWrite ?? price.cacheWrite,
    output: tier.output ?? price.output,
    reasoning: tier.reasoning ?? price.reasoning,
  };
}

/** The exact cost in millionths of a nano-USD, where each token is of the dearest kind. */
function dearestParts(price: PriceConfig, estimate: HoldEstimate): bigint {
  const { input = 0n, cachedInput = input, cacheWrite = input, output = 0n } = price;
  const { reasoning = output } = price;
  const dearest = [input, cachedInput, cacheWrite].reduce((a, b) => (a > b ? a : b));
  const tokens: TokenPrices = {
    input: dearest,
    cachedInput,
    cacheWrite,
    output: output > reasoning ? output : reasoning,
  };
  return costParts(tokens, price, {
    inputTokens: estimate.inputTokens ?? 0,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: estimate.outputTokens ?? 0,
    images: estimate.images,
    seconds: estimate.seconds,
  });
}

/** The exact cost in millionths of a nano-USD. */
function costParts(tokens: TokenPrices, price: PriceConfig, usage: CallUsage): bigint {
  let sum = 0n;
  eachPart(tokens, price, usage, (_unit, parts, nanos) => void (sum += parts * nanos));
  return sum;
}

type Visit = (unit: PriceUnit, parts: bigint, priceNanos: bigint) => void;

/** Goes through what a call is charged for: the one place that says what is part of what. */
function eachPart(tokens: TokenPrices, price: PriceConfig, usage: CallUsage, visit: Visit): void {
  const { input, cachedInput = input, cacheWrite = input, output, reasoning = output } = tokens;
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage;
  const each = (unit: PriceUnit, parts: bigint, nanos: bigint | undefined): void => {
    if (nanos !== undefined && parts > 0n) visit(unit, parts, nanos);
  };
  // A vendor may report more reasoning than output: no more is made than was made.
  const reasoned = Math.min(usage.reasoningTokens ?? 0, outputTokens);
  each("input", count(inputTokens - cachedInputTokens - cacheWriteTokens), input);
  each("cachedInput", count(cachedInputTokens), cachedInput);
  each("cacheWrite", count(cacheWriteTokens), cacheWrite);
  each("output", count(outputTokens - Math.max(reasoned, 0)), output);
  each("reasoning", count(reasoned), reasoning);
  each("image", count(usage.images ?? 0) * partsPerPrice, price.image);
  each("second", count(secondMicros(usage.seconds ?? 0)), price.second);
  each("request", partsPerPrice, price.request);
}

/** Seconds in whole microseconds, which makes them as exact as tokens. */
export function secondMicros(seconds: number): number {
  return Math.round(seconds * 1_000_000);
}

function payable(discountBp: number): bigint {
  return wholeBp - BigInt(discountBp);
}

/** A vendor may report nonsense: less than nothing is nothing. */
function count(value: number): bigint {
  return value > 0 ? BigInt(Math.trunc(value)) : 0n;
}
