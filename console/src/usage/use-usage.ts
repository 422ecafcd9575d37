/** Usage over time, as the charts need it. */
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useState } from "react";
import { UsageBucket, UsageGroup, UsageMetric } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { UsageService } from "../../../gen/uas/billing/v1/usage_service_pb.ts";
import { type RangeName, ranges } from "../common/search.ts";
import { useAccountId } from "../common/session.tsx";
import { dayAfter, localZone, momentIn, timestampOf, wallIn } from "../common/time.ts";

/** The intervals of a chart, by their names in addresses. */
export const buckets = {
  hour: UsageBucket.HOUR,
  day: UsageBucket.DAY,
  week: UsageBucket.WEEK,
  month: UsageBucket.MONTH,
} as const;

/** The data of a chart. */
export interface UsageView {
  readonly range: RangeName;
  /** Days of the zone, both included, in place of the range. By default the range, up to now. */
  readonly days?: { readonly from: string; readonly to: string };
  readonly bucket: UsageBucket;
  readonly group: UsageGroup;
  /** The browser's zone by default. */
  readonly zone?: string;
  /** Only this model. All models by default. */
  readonly model?: string;
  /** Only this key. All keys by default. */
  readonly keyId?: string;
  /** Number of ranges to go back: 1 is the previous one. Default 0. */
  readonly back?: number;
}

/**
 * Maximum number of series in a chart; the others are summed up. More colours cannot be
 * distinguished.
 */
const seriesMax = 8;

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** The usage of a view, fetched again every minute. */
export function useUsage(view: UsageView, accountOf?: string) {
  const own = useAccountId();
  const { fromMs, toMs } = useSpan(view);
  return useQuery(
    UsageService.method.getUsageSeries,
    {
      accountId: accountOf ?? own,
      fromTime: timestampOf(fromMs),
      ...(toMs !== undefined && { toTime: timestampOf(toMs) }),
      bucket: view.bucket,
      timeZone: view.zone ?? localZone(),
      group: view.group,
      groupLimit: seriesMax,
      metric: UsageMetric.COST,
      model: view.model ?? "",
      keyId: view.keyId ?? "",
    },
    // Never fresh: calls may have ended in the meantime, and the sums are cheap.
    { placeholderData: keepPreviousData, refetchInterval: 60_000, staleTime: 0 },
  );
}

/**
 * The time span of a view. It starts with a whole hour or a whole day of the zone, so that no
 * bucket is cut.
 */
function useSpan(view: UsageView): { fromMs: number; toMs?: number } {
  const { range, bucket, days, zone = localZone(), back = 0 } = view;
  const [openedMs] = useState(() => Date.now());
  if (days !== undefined) {
    const count = back * daysOf(days);
    const fromMs = momentIn(zone, dayAfter(days.from, -count));
    return { fromMs, toMs: momentIn(zone, dayAfter(days.to, 1 - count)) };
  }
  const lengthMs = ranges[range];
  const end = openedMs - back * lengthMs;
  const startOf = (ms: number): number =>
    bucket === UsageBucket.HOUR
      ? Math.floor(ms / hourMs + 1) * hourMs
      : momentIn(zone, dayAfter(wallIn(zone, ms).slice(0, 10)));
  const fromMs = startOf(end - lengthMs);
  return back === 0 ? { fromMs } : { fromMs, toMs: startOf(end) };
}

/** The number of days, both ends included. */
export function daysOf({ from, to }: NonNullable<UsageView["days"]>): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / dayMs) + 1;
}
