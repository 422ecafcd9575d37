/** A chart of usage, and its twin: the same numbers as a table. */
import { Suspense, lazy, type ReactNode, useState } from "react";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { GetUsageSeriesResponse } from "../../../gen/uas/billing/v1/usage_service_pb.ts";
import { UsageBucket } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { useText } from "../language.tsx";
import { Card, CardHead, Skeleton } from "../ui/card.tsx";
import { Segments } from "../ui/select.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { type Metric, metrics, type MetricName } from "./metric.ts";
import { UsageTable } from "./table.tsx";
import { type UsageView, useUsage } from "./use-usage.ts";

/** The charts' library is as big as everything else: it is loaded when a chart is there. */
const Bars = lazy(async () => ({ default: (await import("./bars.tsx")).Bars }));

/** One bucket of time, ready to be drawn. */
export interface ChartRow {
  readonly label: string;
  /** The values of the series, in their order; exact. */
  readonly values: readonly bigint[];
}

/** What a chart and its table show. */
export interface ChartData {
  readonly names: readonly string[];
  readonly rows: readonly ChartRow[];
  readonly sums: readonly bigint[];
  readonly metric: Metric;
}

/** The panel. */
export function UsagePanel({
  title,
  hint,
  view,
  metric,
  empty,
  actions,
  nameOf,
}: {
  title: ReactNode;
  hint?: ReactNode;
  view: UsageView;
  metric: MetricName;
  empty: ReactNode;
  actions?: ReactNode;
  /** How a group is called. Default: as it is. */
  nameOf?: (group: string) => string;
}) {
  const texts = useText();
  const { common } = texts;
  const { data, error, refetch } = useUsage(view);
  const [twin, setTwin] = useState<"chart" | "table">("chart");
  const chart = data && chartOf(data, { metric, view, nameOf, texts });
  return (
    <Card>
      <CardHead
        title={title}
        hint={hint}
        actions={
          <>
            <Segments
              label={common.view}
              value={twin}
              choices={[
                { value: "chart", label: common.showChart },
                { value: "table", label: common.showTable },
              ]}
              onChoose={setTwin}
            />
            {actions}
          </>
        }
      />
      <div className="min-h-80">
        {error !== null && (
          <div className="p-5">
            <ErrorNote error={error} onRetry={() => void refetch()} />
          </div>
        )}
        {error === null && chart === undefined && <Skeleton className="m-5 h-70" />}
        {chart !== undefined &&
          (chart.sums.length === 0 ? (
            empty
          ) : twin === "table" ? (
            <UsageTable data={chart} />
          ) : (
            <Suspense fallback={<Skeleton className="m-5 h-70" />}>
              <Bars data={chart} label={typeof title === "string" ? title : common.showChart} />
            </Suspense>
          ))}
      </div>
    </Card>
  );
}

/** Turns the answer into what is drawn. */
function chartOf(
  { bucketTimes, series }: GetUsageSeriesResponse,
  {
    metric: name,
    view,
    nameOf = (group) => group,
    texts: { usage },
  }: {
    metric: MetricName;
    view: UsageView;
    nameOf?: ((group: string) => string) | undefined;
    texts: ReturnType<typeof useText>;
  },
): ChartData {
  const metric = metrics[name];
  const label = bucketLabel(view);
  const shown = series.filter(({ totals }) => metric.of(totals) !== 0n);
  const rows = bucketTimes.map((time, bucket) => ({
    label: label(timestampDate(time)),
    values: shown.map(({ points }) =>
      metric.of(points.find((point) => point.bucket === bucket)?.totals),
    ),
  }));
  return {
    names: shown.map(({ group, rest }) =>
      rest ? usage.rest : group === "" ? usage.everything : nameOf(group),
    ),
    rows,
    sums: shown.map(({ totals }) => metric.of(totals)),
    metric,
  };
}

/** How a bucket is called, in the zone of the view. */
function bucketLabel({ bucket, zone }: UsageView): (start: Date) => string {
  const zoned = zone === undefined ? {} : { timeZone: zone };
  const day = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", ...zoned });
  if (bucket === UsageBucket.MONTH) return (start) => day.format(start).slice(0, 7);
  if (bucket !== UsageBucket.HOUR) return (start) => day.format(start);
  const hour = new Intl.DateTimeFormat("sv-SE", {
    dateStyle: "short",
    timeStyle: "short",
    ...zoned,
  });
  return (start) => hour.format(start);
}
