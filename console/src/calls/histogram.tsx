/**
 * The number of calls over time, above the list. Drawn without the charts library, which is large.
 */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useMemo } from "react";
import {
  CallService,
  type GetCallHistogramResponse,
} from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { useZone } from "../common/clock.tsx";
import { useText } from "../common/language.tsx";
import type { CallSearch } from "../common/search.ts";
import { msOf, timeText } from "../common/time.ts";
import { filterOf } from "./filters.tsx";

/** The most bars that are fetched. */
const barsMax = 60;

/** The height of the drawing, in its units. */
const height = 40;

/** Succeeded and failed calls over the range. Default range: the last 24 hours. */
export function Histogram({ accountId, search }: { accountId: string; search: CallSearch }) {
  const written = JSON.stringify(search);
  const filter = useMemo(
    () => filterOf({ range: "24h", ...(JSON.parse(written) as CallSearch) }),
    [written],
  );
  const { data } = useQuery(
    CallService.method.getCallHistogram,
    { accountId, filter, barLimit: barsMax },
    { placeholderData: keepPreviousData },
  );
  return <div className="h-20 border-b border-line px-5 py-3">{data && <Strip data={data} />}</div>;
}

function Strip({ data }: { data: GetCallHistogramResponse }) {
  const { calls: text } = useText();
  const zone = useZone();
  const { bars, barDuration, countedFromTime, toTime } = data;
  const lengthMs = barDuration ? durationMs(barDuration) : 1;
  const first = Math.floor((countedFromTime ? msOf(countedFromTime) : 0) / lengthMs);
  const last = Math.floor((toTime ? msOf(toTime) : 0) / lengthMs);
  const count = Math.max(1, last - first + 1);
  const most = bars.reduce(
    (most_, bar) => Math.max(most_, Number(bar.succeededCount + bar.failedCount)),
    1,
  );
  const good = bars.reduce((sum, { succeededCount }) => sum + succeededCount, 0n);
  const bad = bars.reduce((sum, { failedCount }) => sum + failedCount, 0n);
  const label = `${text.histogram}: ${text.histogramText(good.toLocaleString(), bad.toLocaleString())}`;
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${count * 10} ${height}`}
      preserveAspectRatio="none"
      className="h-full w-full"
    >
      <line x1="0" x2={count * 10} y1={height} y2={height} className="stroke-line" />
      {bars.map(({ time, succeededCount, failedCount }) => {
        if (time === undefined) return null;
        const x = (Math.floor(msOf(time) / lengthMs) - first) * 10 + 1;
        const goodHeight = (Number(succeededCount) / most) * height;
        const badHeight = (Number(failedCount) / most) * height;
        return (
          <g key={msOf(time)}>
            <title>
              {`${timeText(msOf(time), zone)}: ${text.histogramText(String(succeededCount), String(failedCount))}`}
            </title>
            <rect
              x={x}
              y={height - goodHeight}
              width="8"
              height={goodHeight}
              className="fill-(--chart-1)"
            />
            <rect
              x={x}
              y={height - goodHeight - badHeight}
              width="8"
              height={badHeight}
              className="fill-(--chart-8)"
            />
          </g>
        );
      })}
    </svg>
  );
}
