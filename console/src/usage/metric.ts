/** The metrics of usage: computed from the sums, shown and exported. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { UsageTotals } from "../../../gen/uas/billing/v1/usage_pb.ts";
import type { Money } from "../../../gen/uas/type/v1/money_pb.ts";
import type { GetUsageSeriesResponse } from "../../../gen/uas/billing/v1/usage_service_pb.ts";
import { csvOf } from "../common/csv.ts";
import { decimalUsd, exactUsd, nanosOf, usd } from "../common/money.ts";
import { type FigureName, type MetricName, metricNames } from "../common/search.ts";

/** One metric: an exact integer in its smallest unit, and its texts. */
export interface Metric {
  readonly of: (totals: UsageTotals | undefined) => bigint;
  readonly write: (value: bigint) => string;
  /** The text with all decimals. */
  readonly exact: (value: bigint) => string;
  /** Number of its smallest units in one unit of the chart's axis. */
  readonly scale: number;
}

const count = (value: bigint): string => value.toLocaleString("en-US");

function counted(of: (totals: UsageTotals) => bigint): Metric {
  return { of: (totals) => (totals ? of(totals) : 0n), write: count, exact: count, scale: 1 };
}

const seconds = (value: bigint): string =>
  `${(Number(value) / 1e6).toLocaleString("en-US", { maximumFractionDigits: 1 })} s`;

/** All metrics by name. */
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

function money(of: (totals: UsageTotals) => Money | undefined): Metric {
  return {
    of: (totals) => (totals ? nanosOf(of(totals)) : 0n),
    write: usd,
    exact: exactUsd,
    scale: 1e9,
  };
}

/** The revenue of calls whose vendor cost is not known. */
export const uncosted: Metric = money((totals) => totals.uncosted);

/** Operators' revenue, costs and losses, by name. */
export const figures: Readonly<Record<FigureName, Metric>> = {
  revenue: money(({ cost }) => cost),
  vendorCost: money(({ vendorCost }) => vendorCost),
  attempts: money(({ attemptCost }) => attemptCost),
  loss: money(({ loss }) => loss),
  margin: money(({ margin }) => margin),
};

/** A CSV file with all metrics of each group and bucket that has a call, with exact amounts. */
export function usageCsv(
  { bucketTimes, series }: GetUsageSeriesResponse,
  nameOf: (group: string) => string,
): string {
  const lines = series.flatMap(({ group, rest, points }) =>
    points.map(({ bucket, totals }) => {
      const time = bucketTimes[bucket];
      const values = metricNames.map((name) => {
        const value = metrics[name].of(totals);
        return name === "cost" ? decimalUsd(value) : String(value);
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

/** One bucket of time with its label. */
interface ChartRow {
  readonly label: string;
  /** The values of the series, in their order; exact. */
  readonly values: readonly bigint[];
}

/** The data of a chart and its table. */
export interface ChartData {
  readonly names: readonly string[];
  readonly rows: readonly ChartRow[];
  readonly sums: readonly bigint[];
  readonly metric: Metric;
}
