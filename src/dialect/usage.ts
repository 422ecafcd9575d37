/** What vendors report as consumed, checked before anybody is charged for it. */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../gen/uas/type/v1/usage_pb.ts";

/** Figures as a vendor tells them, of any type. Those of details may be absent. */
export interface ReportedUsage {
  /** Tokens read, cached and written ones included. */
  readonly input: unknown;
  readonly cached: unknown;
  readonly written: unknown;
  readonly output: unknown;
  readonly reasoning: unknown;
  /** Of those written to a cache, the ones kept for an hour. Default 0. */
  readonly hourWritten?: unknown;
}

/** The usage; `undefined` where the two totals are not whole numbers from 0 on. A part is never more
 * than its whole: what a vendor counts twice would be charged below zero. */
export function reportedUsage(reported: ReportedUsage): Usage | undefined {
  const inputTokens = tokenCount(reported.input);
  const outputTokens = tokenCount(reported.output);
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
  const cachedInputTokens = Math.min(tokenCount(reported.cached) ?? 0, inputTokens);
  const written = Math.min(tokenCount(reported.written) ?? 0, inputTokens - cachedInputTokens);
  return create(UsageSchema, {
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: written,
    outputTokens,
    reasoningTokens: Math.min(tokenCount(reported.reasoning) ?? 0, outputTokens),
    cacheWrite1hTokens: Math.min(tokenCount(reported.hourWritten) ?? 0, written),
  });
}

/** A whole number from 0 on that an int32 holds; else `undefined`. */
export function tokenCount(value: unknown): number | undefined {
  const isCount =
    typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 2 ** 31;
  return isCount ? value : undefined;
}
