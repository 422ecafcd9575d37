/** Computes what a call costs: arithmetic in nano-USD. Pure. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { PriceConfig, PriceTier, TokenPrices } from "../../config/config.ts";

/** The counts of a usage that cost money. */
export type TokenUsage = Pick<
  Usage,
  "inputTokens" | "cachedInputTokens" | "cacheWriteTokens" | "outputTokens"
> &
  Partial<Pick<Usage, "reasoningTokens" | "cacheWrite1hTokens">>;

/** Billable units other than tokens. */
export interface UnitUsage {
  /** Images generated. Default 0. */
  readonly images?: number | undefined;
  /** Seconds of audio or video generated; a fraction counts to the microsecond. Default 0. */
  readonly seconds?: number | undefined;
}

/** All that a call can be charged for. */
export type CallUsage = TokenUsage & UnitUsage;

/** The most that a call can use. */
export interface HoldEstimate extends UnitUsage {
  readonly price: PriceConfig;
  /** The most input tokens; each is held at the highest input price. Default 0. */
  readonly inputTokens?: number;
  /** The most output tokens. Default 0. */
  readonly outputTokens?: number;
  /** In hundredths of a percent, 0 to 10,000. Default 0. */
  readonly discountBp?: number;
}

/** The units whose prices are per 1,000,000 tokens, in the order of a receipt. */
export const tokenUnitNames = [
  "input",
  "cachedInput",
  "cacheWrite",
  "cacheWrite1h",
  "output",
  "reasoning",
] as const satisfies readonly (keyof TokenPrices)[];

/** The billable units, in the order of a receipt and of the stored form of a price. */
export const priceUnits = [...tokenUnitNames, "image", "second", "request"] as const;

/** One of {@link priceUnits}. */
export type PriceUnit = (typeof priceUnits)[number];

/** The units whose prices are per 1,000,000. */
export const tokenUnits: ReadonlySet<PriceUnit> = new Set(tokenUnitNames);

/** One line of a receipt: quantity × price = amount, exactly. */
export interface PriceLine {
  readonly unit: PriceUnit;
  /** A number of tokens; of the other units, a number of millionths. */
  readonly quantity: bigint;
  /** Nano-USD per million of `quantity`. */
  readonly priceNanos: bigint;
  /** In millionths of a nano-USD. */
  readonly amountMillionths: bigint;
}

/** The quantity that a price is for: a million tokens, or the millionths of one image, second or request. */
export const quantityPerPrice = 1_000_000n;

/** A discount of 100 %, in hundredths of a percent. */
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
  const parts = costMillionths(tokenPrices(price, usage.inputTokens), price, usage);
  return (parts * payable(discountBp)) / (quantityPerPrice * wholeBp);
}

/**
 * The most that a call can cost in nano-USD, rounded up: the amount of its hold. Of the tiers that the tokens can
 * reach, the most expensive one counts.
 */
export function holdAmount(estimate: HoldEstimate): bigint {
  const { price, inputTokens = 0, discountBp = 0 } = estimate;
  let parts = maxCostMillionths(price, estimate);
  for (const tier of price.tiers ?? []) {
    if (inputTokens <= tier.above) break;
    const reached = maxCostMillionths(withTier(price, tier), estimate);
    if (reached > parts) parts = reached;
  }
  const scale = quantityPerPrice * wholeBp;
  return (parts * payable(discountBp) + scale - 1n) / scale;
}

/** The price tier of a call with so many input tokens; `undefined`: the base price. */
export function tierOf({ tiers = [] }: PriceConfig, inputTokens: number): PriceTier | undefined {
  return tiers.findLast(({ above }) => inputTokens > above);
}

/**
 * The lines that {@link callCost} adds up, before the discount. Units that were not used or have no price have no line.
 */
export function priceLines(price: PriceConfig, usage: CallUsage): PriceLine[] {
  const lines: PriceLine[] = [];
  const tokens = tokenPrices(price, usage.inputTokens);
  forEachCharge(tokens, price, usage, (unit, quantity, priceNanos) => {
    lines.push({ unit, quantity, priceNanos, amountMillionths: quantity * priceNanos });
  });
  return lines;
}

/** The token prices of a call: those of its tier, and the base price's where the tier has none. */
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
    cacheWrite1h: tier.cacheWrite1h ?? price.cacheWrite1h,
    output: tier.output ?? price.output,
    reasoning: tier.reasoning ?? price.reasoning,
  };
}

/** The exact cost in millionths of a nano-USD, with each token at the highest price of its direction. */
function maxCostMillionths(price: PriceConfig, estimate: HoldEstimate): bigint {
  const { input = 0n, cachedInput = input, cacheWrite = input, output = 0n } = price;
  const { reasoning = output, cacheWrite1h = cacheWrite } = price;
  const maxInput = [input, cachedInput, cacheWrite, cacheWrite1h].reduce((a, b) => (a > b ? a : b));
  const tokens: TokenPrices = {
    input: maxInput,
    cachedInput,
    cacheWrite,
    output: output > reasoning ? output : reasoning,
  };
  return costMillionths(tokens, price, {
    inputTokens: estimate.inputTokens ?? 0,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: estimate.outputTokens ?? 0,
    images: estimate.images,
    seconds: estimate.seconds,
  });
}

/** The exact cost in millionths of a nano-USD. */
function costMillionths(tokens: TokenPrices, price: PriceConfig, usage: CallUsage): bigint {
  let sum = 0n;
  forEachCharge(tokens, price, usage, (_unit, parts, nanos) => void (sum += parts * nanos));
  return sum;
}

type ChargeVisitor = (unit: PriceUnit, parts: bigint, priceNanos: bigint) => void;

/** Visits every charge of a call: the one place that splits input and output into their priced kinds. */
function forEachCharge(
  tokens: TokenPrices,
  price: PriceConfig,
  usage: CallUsage,
  visit: ChargeVisitor,
): void {
  const { input, cachedInput = input, cacheWrite = input, output, reasoning = output } = tokens;
  const { cacheWrite1h = cacheWrite } = tokens;
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage;
  const { cacheWrite1hTokens = 0 } = usage;
  const each = (unit: PriceUnit, parts: bigint, nanos: bigint | undefined): void => {
    if (nanos !== undefined && parts > 0n) visit(unit, parts, nanos);
  };
  // A vendor may report more reasoning tokens than output tokens: at most the output counts.
  const reasoned = Math.min(usage.reasoningTokens ?? 0, outputTokens);
  each("input", count(inputTokens - cachedInputTokens - cacheWriteTokens), input);
  each("cachedInput", count(cachedInputTokens), cachedInput);
  // They are among those written: a vendor may report more of them.
  const lasting = Math.max(0, Math.min(cacheWrite1hTokens, cacheWriteTokens));
  each("cacheWrite", count(cacheWriteTokens - lasting), cacheWrite);
  if (lasting > 0) each("cacheWrite1h", count(lasting), cacheWrite1h);
  each("output", count(outputTokens - Math.max(reasoned, 0)), output);
  each("reasoning", count(reasoned), reasoning);
  each("image", count(usage.images ?? 0) * quantityPerPrice, price.image);
  each("second", count(secondMicros(usage.seconds ?? 0)), price.second);
  each("request", quantityPerPrice, price.request);
}

/** Seconds in whole microseconds, which makes them as exact as tokens. */
export function secondMicros(seconds: number): number {
  return Math.round(seconds * 1_000_000);
}

function payable(discountBp: number): bigint {
  return wholeBp - BigInt(discountBp);
}

/** A usable count: a vendor may report negative numbers or fractions. */
function count(value: number): bigint {
  return value > 0 ? BigInt(Math.trunc(value)) : 0n;
}
