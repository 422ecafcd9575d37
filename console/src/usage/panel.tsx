/** A chart of usage, and the same numbers as a table. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { UsageBucket } from "../../../gen/uas/billing/v1/usage_pb.ts";
import type { GetUsageSeriesResponse } from "../../../gen/uas/billing/v1/usage_service_pb.ts";
import { useText } from "../common/language.tsx";
import { Card, CardHead, Skeleton } from "../ui/card.tsx";
import { Segments } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import type { ChartData, Metric } from "./metric.ts";
import { type UsageView, useUsage } from "./use-usage.ts";

/** Loaded with the first chart, because the charts library is as large as everything else. */
const Bars = lazy(async () => ({ default: (await import("./bars.tsx")).Bars }));

/** A card with a chart of usage, and the same numbers as a table. */
export function UsagePanel({
  title,
  hint,
  view,
  metric,
  accountId,
  empty,
  actions,
  nameOf,
}: {
  title: ReactNode;
  hint?: ReactNode;
  view: UsageView;
  metric: Metric;
  /** Empty for all accounts. The account of the session by default. */
  accountId?: string;
  empty: ReactNode;
  actions?: ReactNode;
  /** The name of a group. The group itself by default. */
  nameOf?: (group: string) => string;
}) {
  const texts = useText();
  const { common } = texts;
  const { data, error, refetch } = useUsage(view, accountId);
  const [shown, setView] = useState<View>("chart");
  const chart = data && chartOf(data, { metric, view, nameOf, texts });
  return (
    <Card>
      <CardHead
        title={title}
        hint={hint}
        actions={
          <>
            <ViewSwitch view={shown} onChoose={setView} />
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
          ) : shown === "table" ? (
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

type View = "chart" | "table";

function ViewSwitch({ view, onChoose }: { view: View; onChoose: (view: View) => void }) {
  const { common } = useText();
  return (
    <Segments
      label={common.view}
      value={view}
      choices={[
        { value: "chart", label: common.showChart },
        { value: "table", label: common.showTable },
      ]}
      onChoose={onChoose}
    />
  );
}

/** Turns a reply into the data of a chart. */
function chartOf(
  { bucketTimes, series }: GetUsageSeriesResponse,
  {
    metric,
    view,
    nameOf = (group) => group,
    texts: { usage },
  }: {
    metric: Metric;
    view: UsageView;
    nameOf?: ((group: string) => string) | undefined;
    texts: ReturnType<typeof useText>;
  },
): ChartData {
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

/** The label of a bucket, in the zone of the view. */
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

/** The numbers as a table: newest first, without empty buckets. */
function UsageTable({ data: { names, rows, sums, metric } }: { data: ChartData }) {
  const { usage, common } = useText();
  const total = sums.reduce((sum, each) => sum + each, 0n);
  const filled = rows.filter(({ values }) => values.some((value) => value !== 0n)).toReversed();
  const hasTotal = names.length > 1;
  return (
    <div
      role="region"
      aria-label={common.showTable}
      tabIndex={0}
      className="max-h-96 overflow-auto"
    >
      <table className="w-full text-[0.8125rem]">
        <thead className="sticky top-0 bg-surface">
          <tr className="border-b border-line text-xs text-muted">
            <th scope="col" className="px-5 py-2.5 text-left font-medium">
              {common.time}
            </th>
            {names.map((name) => (
              <th key={name} scope="col" className="px-3 py-2.5 text-right font-medium last:pr-5">
                {name}
              </th>
            ))}
            {hasTotal && (
              <th scope="col" className="px-3 py-2.5 pr-5 text-right font-medium">
                {usage.total}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {filled.map(({ label, values }) => (
            <Row
              key={label}
              head={label}
              values={hasTotal ? [...values, values.reduce((sum, each) => sum + each, 0n)] : values}
              metric={metric}
            />
          ))}
        </tbody>
        <tfoot className="border-t border-line font-medium">
          <Row head={usage.total} values={hasTotal ? [...sums, total] : sums} metric={metric} />
        </tfoot>
      </table>
    </div>
  );
}

function Row({
  head,
  values,
  metric,
}: {
  head: string;
  values: readonly bigint[];
  metric: ChartData["metric"];
}) {
  return (
    <tr className="border-b border-line last:border-0">
      <th scope="row" className="px-5 py-2 text-left font-normal whitespace-nowrap">
        {head}
      </th>
      {values.map((value, index) => (
        <td
          // oxlint-disable-next-line react/no-array-index-key -- columns do not move
          key={index}
          title={metric.exact(value)}
          className="px-3 py-2 text-right whitespace-nowrap last:pr-5"
        >
          {value === 0n ? "—" : metric.write(value)}
        </td>
      ))}
    </tr>
  );
}
