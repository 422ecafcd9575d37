/** Usage over time, asked for as the charts show it. */
import { keepPreviousData } from "@tanstack/react-query";
import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import { UsageBucket, UsageGroup, UsageMetric } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { UsageService } from "../../../gen/uas/billing/v1/usage_service_pb.ts";
import { type RangeName, ranges } from "../search.ts";
import { useAccountId } from "../session.tsx";
import { localZone, timestampOf } from "../time.ts";

/** What is shown. */
export interface UsageView {
  readonly range: RangeName;
  readonly bucket: UsageBucket;
  readonly group: UsageGroup;
  /** Default: this browser's. */
  readonly zone?: string;
  /** Only of this model. Default: of all. */
  readonly model?: string;
  /** Only of this key. Default: of all. */
  readonly keyId?: string;
  /** How many ranges ago: 1 is the one before this one. Default 0. */
  readonly back?: number;
}

/** The most series of a chart; the others are the rest. More colours than these cannot be told apart. */
const seriesMax = 8;

const hourMs = 3_600_000;

/** The usage of a view. It keeps up by itself while the page is open. */
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
    // Asked for anew by each page: calls may have ended since, and the sums are cheap.
    { placeholderData: keepPreviousData, refetchInterval: 60_000, staleTime: 0 },
  );
}

/** The range of a view. It begins with an hour, or with a day of the zone, so that no bucket is cut. */
function useSpan({ range, bucket, back = 0 }: UsageView): { fromMs: number; toMs?: number } {
  const [openedMs] = useState(() => Date.now());
  const lengthMs = ranges[range];
  const end = openedMs - back * lengthMs;
  const fromMs = startOf(end - lengthMs, bucket);
  return back === 0 ? { fromMs } : { fromMs, toMs: startOf(end, bucket) };
}

function startOf(ms: number, bucket: UsageBucket): number {
  if (bucket === UsageBucket.HOUR) return Math.floor(ms / hourMs + 1) * hourMs;
  const day = new Date(ms);
  day.setHours(24, 0, 0, 0);
  return day.getTime();
}

export { UsageBucket, UsageGroup };
