/** The metrics of usage: how they are read from the sums, shown and exported. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { UsageTotals } from "../../../gen/uas/billing/v1/usage_pb.ts";
import type { GetUsageSeriesResponse } from "../../../gen/uas/billing/v1/usage_service_pb.ts";
import { csvOf } from "../common/csv.ts";
import { exactUsd, nanosOf, usd } from "../common/money.ts";

/** The metrics, in the order of the page. */
export const metricNames = [
  "cost",
  "calls",
  "failed",
  "tokens",
  "input",
  "cached",
  "output",
  "images",
  "seconds",
] as const;

export type MetricName = (typeof metricNames)[number];

/** One metric: an exact integer of its smallest unit, and how it is written. */
export interface Metric {
  readonly of: (totals: UsageTotals | undefined) => bigint;
  readonly write: (value: bigint) => string;
  /** Written with nothing cut off. */
  readonly exact: (value: bigint) => string;
  /** How many smallest units the unit of the chart's axis has. */
  readonly scale: number;
}

const count = (value: bigint): string => value.toLocaleString("en-US");

function counted(of: (totals: UsageTotals) => bigint): Metric {
  return { of: (totals) => (totals ? of(totals) : 0n), write: count, exact: count, scale: 1 };
}

const seconds = (value: bigint): string =>
  `${(Number(value) / 1e6).toLocaleString("en-US", { maximumFractionDigits: 1 })} s`;

/** Every metric. */
export const metrics: Readonly<Record<MetricName, Metric>> = {
  cost: { of: (totals) => nanosOf(totals?.cost), write: usd, exact: exactUsd, scale: 1e9 },
  calls: counted(({ callCount }) => callCount),
  failed: counted(({ failedCallCount }) => failedCallCount),
  tokens: counted(({ inputTokens, outputTokens }) => inputTokens + outputTokens),
  input: counted(({ inputTokens }) => inputTokens),
  cached: counted(({ cachedInputTokens }) => cachedInputTokens),
  output: counted(({ outputTokens }) => outputTokens),
  images: counted(({ imageCount }) => imageCount),
  seconds: {
    of: (totals) => totals?.secondMicros ?? 0n,
    write: seconds,
    exact: seconds,
    scale: 1e6,
  },
};

/** All metrics of each group in each bucket that has any call, with exact amounts. */
export function usageCsv(
  { bucketTimes, series }: GetUsageSeriesResponse,
  nameOf: (group: string) => string,
): string {
  const lines = series.flatMap(({ group, rest, points }) =>
    points.map(({ bucket, totals }) => {
      const time = bucketTimes[bucket];
      const values = metricNames.map((name) => {
        const value = metrics[name].of(totals);
        return name === "cost" ? exactUsd(value).replace(" USD", "") : String(value);
      });
      return [
        time ? timestampDate(time).toISOString() : "",
        rest ? "(rest)" : nameOf(group),
        ...values,
      ];
    }),
  );
  const head = ["time", "group", "cost_usd", ...metricNames.slice(1, -1), "second_micros"];
  return csvOf(head, lines);
}
