/** Validates usage that vendors report before it is charged. */
import { ScalarType } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../../gen/uas/type/v1/usage_pb.ts";

const usageType = UsageSchema.typeName;

/** Figures as vendors send them, of any type. Details may be absent. */
export interface ReportedUsage {
  /** Tokens read, cached and written ones included. */
  readonly input: unknown;
  readonly cached: unknown;
  readonly written: unknown;
  readonly output: unknown;
  readonly reasoning: unknown;
  /** Of those written to a cache, the ones kept for an hour. Default 0. */
  readonly hourWritten?: unknown;
  /** The ones kept for twelve hours. Default 0. */
  readonly halfDayWritten?: unknown;
  /** Audio tokens of the input. Default 0. */
  readonly heard?: unknown;
  /** Audio tokens of the output. Default 0. */
  readonly spoken?: unknown;
  /** Image tokens of the output. Default 0. */
  readonly drawn?: unknown;
  /** Output tokens of a rejected prediction. Default 0. */
  readonly rejected?: unknown;
  /** Calls of the vendor's tools. Default: none. */
  readonly webSearches?: unknown;
  readonly webFetches?: unknown;
  readonly codeExecutions?: unknown;
  readonly fileSearches?: unknown;
  /** The service tier, in the vendor's word. Default: not reported. */
  readonly serviceTier?: unknown;
  /** Names of unknown figures. Default: none. */
  readonly unknown?: string | undefined;
}

/**
 * The usage; `undefined` if the two totals are not whole numbers from 0 on. A part is never more
 * than its whole: what a vendor counts twice would be charged below zero.
 */
export function reportedUsage(reported: ReportedUsage): Usage | undefined {
  const inputTokens = tokenCount(reported.input);
  const outputTokens = tokenCount(reported.output);
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
  const cachedInputTokens = Math.min(tokenCount(reported.cached) ?? 0, inputTokens);
  const written = Math.min(tokenCount(reported.written) ?? 0, inputTokens - cachedInputTokens);
  const reasoningTokens = Math.min(tokenCount(reported.reasoning) ?? 0, outputTokens);
  // `create` would cost each call a microsecond.
  const usage: Usage = {
    $typeName: usageType,
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: written,
    outputTokens,
    reasoningTokens,
  };
  setSome(usage, "cacheWrite1hTokens", reported.hourWritten, written);
  setSome(usage, "cacheWrite12hTokens", reported.halfDayWritten, written);
  setSome(usage, "audioInputTokens", reported.heard, inputTokens - cachedInputTokens - written);
  setSome(usage, "audioOutputTokens", reported.spoken, outputTokens - reasoningTokens);
  setSome(usage, "imageOutputTokens", reported.drawn, outputTokens - reasoningTokens);
  setSome(usage, "rejectedPredictionTokens", reported.rejected, outputTokens);
  setSome(usage, "webSearches", reported.webSearches);
  setSome(usage, "webFetches", reported.webFetches);
  setSome(usage, "codeExecutions", reported.codeExecutions);
  setSome(usage, "fileSearches", reported.fileSearches);
  const { serviceTier: tier } = reported;
  if (typeof tier === "string" && tier !== "") usage.serviceTier = tier.slice(0, 64);
  if (reported.unknown !== undefined) usage.unknownMembers = reported.unknown;
  return usage;
}

/**
 * The usage of a stream after a later report. The larger of two figures counts: some vendors repeat
 * only what has changed, and write 0 or nothing for the rest.
 */
export function grownUsage(before: Usage | undefined, later: Usage | undefined): Usage | undefined {
  if (before === undefined || later === undefined) return later ?? before;
  const grown: Usage = { ...later };
  for (const name of figures) {
    const count = Math.max(before[name] ?? 0, later[name] ?? 0);
    if (count > 0) grown[name] = count;
  }
  const unknown = later.unknownMembers ?? before.unknownMembers;
  if (unknown !== undefined) grown.unknownMembers = unknown;
  const tier = later.serviceTier ?? before.serviceTier;
  if (tier !== undefined) grown.serviceTier = tier;
  return grown;
}

/** A member of a usage that is a number. */
type Figure = {
  [Member in keyof Usage]-?: Usage[Member] extends number | undefined ? Member : never;
}[keyof Usage];

const figures = UsageSchema.fields
  .filter(({ scalar }) => scalar === ScalarType.INT32)
  .map(({ localName }) => localName as Figure);

/** The totals of a report, of any type. */
interface Totals {
  readonly input: unknown;
  readonly output: unknown;
  /** Input and output together. */
  readonly total: unknown;
  /** Tokens that were read from a cache, and written to one. */
  readonly cached: number | undefined;
  readonly written: number | undefined;
  /** The same under Anthropic's names. */
  readonly ofAnthropic: readonly unknown[];
}

/** Input and output, with the tokens that the vendor counts separately. */
interface WholeTotals {
  /** Of any type if the vendor's figure is no count. */
  readonly input: unknown;
  readonly output: unknown;
  /** The output that only the total shows. */
  readonly hidden: number;
}

/**
 * Adds tokens that a vendor counts separately to input and output. A surplus of the total counts as
 * output: xAI and Gemini's compatible endpoint omit reasoning. A surplus equal to the cached input
 * counts as input: proxies of Anthropic omit it there, and also report more cached tokens than
 * input. A total below input and output is ignored.
 */
export function wholeTotals(reported: Totals): WholeTotals {
  const { input, output, total, cached = 0, written = 0, ofAnthropic } = reported;
  const read = tokenCount(input);
  const made = tokenCount(output);
  if (read === undefined || made === undefined) return { input, output, hidden: 0 };
  const besides = Math.max(0, (tokenCount(total) ?? 0) - read - made);
  const stored = cached + written;
  const named = ofAnthropic.reduce<number>((sum, each) => sum + (tokenCount(each) ?? 0), 0);
  const isBeside = (besides > 0 && besides === stored) || named > read;
  const hidden = isBeside ? Math.max(0, besides - stored) : besides;
  return {
    input: sumOfTokens(read, isBeside ? stored : 0),
    output: sumOfTokens(made, hidden),
    hidden,
  };
}

/**
 * The first count above 0 that a vendor reports, of several names for it in the order of their
 * weight; else 0 if one is 0.
 */
export function firstCount(...reported: readonly unknown[]): number | undefined {
  const counts = reported.map(tokenCount).filter((count) => count !== undefined);
  return counts.find((count) => count > 0) ?? counts[0];
}

/**
 * The largest of the counts that a vendor reports under several names; undefined if there is none.
 */
export function largestCount(...reported: readonly unknown[]): number | undefined {
  const counts = reported.map(tokenCount).filter((count) => count !== undefined);
  return counts.length === 0 ? undefined : Math.max(...counts);
}

/** Adds a count that a vendor reports separately. Of any type if the first value is not a count. */
export function sumOfTokens(tokens: unknown, beside: unknown): unknown {
  const count = tokenCount(tokens);
  return count === undefined ? tokens : Math.min(count + (tokenCount(beside) ?? 0), tokensMax);
}

/** Sets what few calls use, if there is any. @param max of which it is a part. Default: no limit */
function setSome(usage: Usage, member: Figure, reported: unknown, max = Infinity): void {
  if (reported === undefined) return;
  const quantity = Math.min(tokenCount(reported) ?? 0, max);
  if (quantity > 0) usage[member] = quantity;
}

/** The largest count that the contract can carry: an int32. */
export const tokensMax = 2 ** 31 - 1;

/** A whole number from 0 to {@link tokensMax}; else `undefined`. */
export function tokenCount(value: unknown): number | undefined {
  const isCount =
    typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= tokensMax;
  return isCount ? value : undefined;
}
