/** Computes what a call costs: arithmetic in nano-USD. Pure. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { PriceConfig, PriceTier, TokenPrices } from "../../config/config.ts";
import {
  type RareQuantities,
  type RareUsage,
  rareUnits,
  tokenUnits,
  type UnitKey,
} from "../../config/price-units.ts";
import { amountNanosMax } from "../../core/money.ts";

/** The counts of a usage that cost money. */
type TokenUsage = Pick<
  Usage,
  "inputTokens" | "cachedInputTokens" | "cacheWriteTokens" | "outputTokens"
> &
  Partial<Pick<Usage, "reasoningTokens">> &
  RareQuantities;

/** Billable units other than tokens. Absent if there is none. */
export interface UnitUsage extends Pick<RareQuantities, CountedUnit> {
  /** Images generated. */
  readonly images?: number | undefined;
  /** Seconds of audio or video generated; a fraction counts to the microsecond. */
  readonly seconds?: number | undefined;
}

/** The members of a usage that count single things. */
type CountedUnit = Exclude<RareUsage, `${string}Tokens`>;

/** All that a call can be charged for. */
export type CallUsage = TokenUsage & UnitUsage;

/** The most that a call can use. */
export interface HoldEstimate extends UnitUsage {
  readonly price: PriceConfig;
  /** The most input tokens; each is held at the highest input price. Default 0. */
  readonly inputTokens?: number;
  /** The most output tokens. Default 0. */
  readonly outputTokens?: number;
  /** Whether input tokens can be audio. Default false. */
  readonly hasAudioInput?: boolean | undefined;
  /** Whether output tokens can be audio. Default false. */
  readonly hasAudioOutput?: boolean | undefined;
  /** Whether output tokens can be images. Default false. */
  readonly hasImageOutput?: boolean | undefined;
  /** In hundredths of a percent, 0 to 10,000. Default 0. */
  readonly discountBp?: number;
}

/** One line of a receipt: quantity × price = amount, exactly. */
export interface PriceLine {
  readonly unit: UnitKey;
  /** A number of tokens or token-hours; of the other units, a number of millionths. */
  readonly quantity: bigint;
  /** Nano-USD per million of `quantity`. */
  readonly priceNanos: bigint;
  /** In millionths of a nano-USD. */
  readonly amountMillionths: bigint;
}

/**
 * The quantity that a price is for: a million tokens or token-hours, or the millionths of one
 * image, second, call of a tool …
 */
export const quantityPerPrice = 1_000_000n;

/** A discount of 100 %, in hundredths of a percent. */
const discountBpMax = 10_000;

const wholeBp = BigInt(discountBpMax);

/**
 * The cost of a call in nano-USD: one rounding, down, after the discount. Cached and written tokens
 * are part of the input, and reasoning is part of the output; each is charged at its own price,
 * which defaults to that of the whole; `request` is added once.
 *
 * @param discountBp what the account does not pay, in hundredths of a percent, 0 to 10,000. Default
 * 0
 * @returns at most {@link amountNanosMax}, whatever usage the vendor reports: no account can pay
 * more
 */
export function callCost(price: PriceConfig, usage: CallUsage, discountBp = 0): bigint {
  const parts = costMillionths(tokenPrices(price, usage.inputTokens), price, {
    tokens: usage,
    units: usage,
  });
  const nanos = (parts * payable(discountBp)) / (quantityPerPrice * wholeBp);
  return nanos < amountNanosMax ? nanos : amountNanosMax;
}

/**
 * The most that a call can cost in nano-USD, rounded up: the amount of its hold. Of the tiers that
 * the tokens can reach, the most expensive one counts.
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

/** The price tier of a call with so many input tokens; undefined for the base price. */
export function tierOf({ tiers = [] }: PriceConfig, inputTokens: number): PriceTier | undefined {
  return tiers.findLast(({ above }) => inputTokens > above);
}

/**
 * The lines that {@link callCost} adds up, before the discount. Units that were not used or have no
 * price have no line.
 */
export function priceLines(price: PriceConfig, usage: CallUsage): PriceLine[] {
  const lines: PriceLine[] = [];
  const tokens = tokenPrices(price, usage.inputTokens);
  forEachCharge(tokens, price, { tokens: usage, units: usage }, (unit, quantity, priceNanos) => {
    lines.push({ unit, quantity, priceNanos, amountMillionths: quantity * priceNanos });
  });
  return lines;
}

/** The token prices of a call: those of its tier, and the base price's if the tier has none. */
function tokenPrices(price: PriceConfig, inputTokens: number): TokenPrices {
  if (price.tiers === undefined) return price;
  const tier = tierOf(price, inputTokens);
  return tier === undefined ? price : withTier(price, tier);
}

function withTier(price: PriceConfig, tier: PriceTier): PriceConfig {
  const tiered: { -readonly [Member in keyof PriceConfig]: PriceConfig[Member] } = { ...price };
  for (const { key } of tokenUnits) tiered[key] = tier[key] ?? price[key];
  return tiered;
}

/**
 * The exact cost in millionths of a nano-USD, with each token at the highest price of its
 * direction.
 */
function maxCostMillionths(price: PriceConfig, estimate: HoldEstimate): bigint {
  const { input = 0n, cachedInput = input, cacheWrite = input, output = 0n } = price;
  const { reasoning = output, cacheWrite1h = cacheWrite, cacheWrite12h = cacheWrite } = price;
  let maxInput = highest(highest(input, cachedInput), highest(cacheWrite, cacheWrite1h));
  maxInput = highest(maxInput, cacheWrite12h);
  let maxOutput = highest(output, reasoning);
  if (estimate.hasAudioInput === true) maxInput = highest(maxInput, price.audioInput ?? 0n);
  if (estimate.hasAudioOutput === true) maxOutput = highest(maxOutput, price.audioOutput ?? 0n);
  if (estimate.hasImageOutput === true) maxOutput = highest(maxOutput, price.imageOutput ?? 0n);
  const tokens: TokenPrices = { input: maxInput, cachedInput, cacheWrite, output: maxOutput };
  const { inputTokens = 0, outputTokens = 0 } = estimate;
  const most = { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens };
  return costMillionths(tokens, price, { tokens: most, units: estimate });
}

function highest(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** The exact cost in millionths of a nano-USD. */
function costMillionths(tokens: TokenPrices, price: PriceConfig, used: Used): bigint {
  let sum = 0n;
  forEachCharge(tokens, price, used, (_unit, parts, nanos) => void (sum += parts * nanos));
  return sum;
}

/** A usage in two parts, which can be one object. */
interface Used {
  readonly tokens: TokenUsage;
  readonly units: UnitUsage;
}

type ChargeVisitor = (unit: UnitKey, parts: bigint, priceNanos: bigint) => void;

/**
 * Visits every charge of a call: the one place that splits input and output into their priced
 * kinds.
 */
function forEachCharge(
  tokens: TokenPrices,
  price: PriceConfig,
  { tokens: usage, units }: Used,
  visit: ChargeVisitor,
): void {
  const { input, cachedInput = input, cacheWrite = input, output, reasoning = output } = tokens;
  const { cacheWrite1h = cacheWrite, cacheWrite12h = cacheWrite } = tokens;
  const { audioInput = input, audioOutput = output, imageOutput = output } = tokens;
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage;
  const each = (unit: UnitKey, parts: bigint, nanos: bigint | undefined): void => {
    if (nanos !== undefined && parts > 0n) visit(unit, parts, nanos);
  };
  const some = (unit: UnitKey, quantity: number | undefined, nanos: bigint | undefined): void => {
    if (quantity !== undefined) each(unit, count(quantity) * quantityPerPrice, nanos);
  };
  // A vendor may report more of a part than of its whole: at most the whole counts.
  const fresh = inputTokens - cachedInputTokens - cacheWriteTokens;
  const heard = partOf(usage.audioInputTokens, fresh);
  const lasting = partOf(usage.cacheWrite1hTokens, cacheWriteTokens);
  const longest = partOf(usage.cacheWrite12hTokens, cacheWriteTokens - lasting);
  const reasoned = partOf(usage.reasoningTokens, outputTokens);
  const spoken = partOf(usage.audioOutputTokens, outputTokens - reasoned);
  const drawn = partOf(usage.imageOutputTokens, outputTokens - reasoned - spoken);
  each("input", count(fresh - heard), input);
  each("cachedInput", count(cachedInputTokens), cachedInput);
  each("cacheWrite", count(cacheWriteTokens - lasting - longest), cacheWrite);
  if (lasting > 0) each("cacheWrite1h", count(lasting), cacheWrite1h);
  if (longest > 0) each("cacheWrite12h", count(longest), cacheWrite12h);
  if (heard > 0) each("audioInput", count(heard), audioInput);
  each("output", count(outputTokens - reasoned - spoken - drawn), output);
  each("reasoning", count(reasoned), reasoning);
  if (spoken > 0) each("audioOutput", count(spoken), audioOutput);
  if (drawn > 0) each("imageOutput", count(drawn), imageOutput);
  some("image", units.images, price.image);
  if (units.seconds !== undefined) each("second", count(secondMicros(units.seconds)), price.second);
  for (const { key, usage: member } of countedUnits) some(key, units[member], price[key]);
  if (units.storedTokenHours !== undefined)
    each("cacheStorage", count(units.storedTokenHours), price.cacheStorage);
  each("request", quantityPerPrice, price.request);
}

/** The units that count single things: characters, searches, calls of tools. */
const countedUnits = rareUnits.filter(
  (unit): unit is typeof unit & { readonly usage: CountedUnit } => !unit.per.startsWith("1M "),
);

/** A part of a whole: from 0 to the whole. */
function partOf(part: number | undefined, whole: number): number {
  return part === undefined ? 0 : Math.max(0, Math.min(part, whole));
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
