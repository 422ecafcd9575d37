/** Usage as a file for spreadsheets. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { GetUsageSeriesResponse } from "../../../gen/uas/billing/v1/usage_service_pb.ts";
import { csvOf } from "../csv.ts";
import { exactUsd } from "../money.ts";
import { metricNames, metrics } from "./metric.ts";

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
