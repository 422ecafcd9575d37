/** What charts measure, and how it is read out of the sums. */
import type { UsageTotals } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { exactUsd, nanosOf, usd } from "../money.ts";

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
