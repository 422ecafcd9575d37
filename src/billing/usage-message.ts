/** Sums of usage as messages of the contract. */
import { create } from "@bufbuild/protobuf";
import {
  UsageMetric,
  type UsageSeries,
  UsageSeriesSchema,
  type UsageTotals,
  UsageTotalsSchema,
} from "../../gen/uas/billing/v1/usage_pb.ts";
import { money } from "../usd.ts";
import type { UsageRow } from "./usage-query.ts";

/** How sums are told. */
export interface UsageView {
  /** Whether what vendors take is told. */
  readonly isOperator: boolean;
  readonly metric: UsageMetric;
}

/** The rows as one series for each group: the largest first, the rest last. */
export function usageSeries(rows: readonly UsageRow[], view: UsageView): UsageSeries[] {
  const groups = Map.groupBy(rows, (row) => row.group);
  const series = [...groups].map(([group, own]) => ({
    rest: group === null,
    size: sizeOf(own, view.metric),
    message: create(UsageSeriesSchema, {
      group: group ?? "",
      rest: group === null,
      totals: usageTotals(own, view),
      points: own.map((row) => ({ bucket: row.bucket, totals: usageTotals([row], view) })),
    }),
  }));
  const byRank = (a: (typeof series)[number], b: (typeof series)[number]): number =>
    Number(a.rest) - Number(b.rest) || Number(b.size - a.size);
  return series.toSorted(byRank).map(({ message }) => message);
}

/** The sums of some rows. */
export function usageTotals(rows: readonly UsageRow[], { isOperator }: UsageView): UsageTotals {
  const sum = (name: Exclude<keyof UsageRow, "bucket" | "group">): bigint =>
    rows.reduce((total, row) => total + BigInt(row[name]), 0n);
  return create(UsageTotalsSchema, {
    callCount: sum("calls"),
    failedCallCount: sum("failed_calls"),
    inputTokens: sum("input_tokens"),
    cachedInputTokens: sum("cached_input_tokens"),
    cacheWriteTokens: sum("cache_write_tokens"),
    outputTokens: sum("output_tokens"),
    reasoningTokens: sum("reasoning_tokens"),
    imageCount: sum("images"),
    secondMicros: sum("second_micros"),
    cost: money(sum("cost")),
    ...(isOperator && { vendorCost: money(sum("vendor_cost")) }),
  });
}

function sizeOf(rows: readonly UsageRow[], metric: UsageMetric): bigint {
  const size = (row: UsageRow): string | bigint => {
    if (metric === UsageMetric.CALLS) return row.calls;
    if (metric === UsageMetric.FAILED_CALLS) return row.failed_calls;
    return metric === UsageMetric.TOKENS
      ? BigInt(row.input_tokens) + BigInt(row.output_tokens)
      : row.cost;
  };
  return rows.reduce((total, row) => total + BigInt(size(row)), 0n);
}
