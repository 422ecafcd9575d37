/** Stacked bars over time. */
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from "recharts";
import { useText } from "../common/language.tsx";
import type { ChartData } from "./metric.ts";

/** Stacked bars with a legend. */
export function Bars({ data, label }: { data: ChartData; label: string }) {
  const { names, metric } = data;
  return (
    <figure className="px-3 pb-4">
      <div className="h-64 w-full">
        <ResponsiveContainer width="100%" height="100%">
          <BarChart
            data={pointsOf(data)}
            margin={{ top: 8, right: 8, left: 12, bottom: 0 }}
            title={label}
            stackOffset="sign"
          >
            <CartesianGrid vertical={false} stroke="var(--line)" />
            <XAxis
              dataKey="name"
              tickLine={false}
              axisLine={{ stroke: "var(--line-strong)" }}
              tick={axisText}
              minTickGap={24}
              tickFormatter={(name: string) => name.slice(5)}
            />
            <YAxis
              tickLine={false}
              axisLine={false}
              tick={axisText}
              width="auto"
              tickFormatter={(value: number) =>
                metric.write(BigInt(Math.round(value * metric.scale)))
              }
            />
            <Tooltip
              cursor={{ fill: "var(--hover)" }}
              isAnimationActive={false}
              content={({ active, payload }) => (
                <Hint data={data} row={active ? indexOf(payload) : undefined} />
              )}
            />
            {names.map((name, series) => (
              <Bar
                key={name}
                dataKey={`s${series}`}
                name={name}
                stackId="all"
                maxBarSize={36}
                fill={colour(series)}
                isAnimationActive={false}
                radius={series === names.length - 1 ? [3, 3, 0, 0] : 0}
              />
            ))}
          </BarChart>
        </ResponsiveContainer>
      </div>
      <Legend data={data} />
    </figure>
  );
}

/** The points of a chart: a value for each series, in the units of the metric. */
function pointsOf({ rows, metric }: ChartData) {
  return rows.map(({ label: name, values }, index) => ({
    name,
    index,
    ...Object.fromEntries(
      values.map((value, series) => [`s${series}`, Number(value) / metric.scale]),
    ),
  }));
}

const axisText = { fill: "var(--muted)", fontSize: 12 };

/** The number of colours; further series share the last one, a grey. */
const colours = 9;

function colour(series: number): string {
  return `var(--chart-${Math.min(series + 1, colours)})`;
}

function indexOf(payload: readonly { payload?: { index?: number } }[] | undefined) {
  return payload?.[0]?.payload?.index;
}

/** The tooltip of a bar: its series and their sum. */
function Hint({ data, row }: { data: ChartData; row: number | undefined }) {
  const { usage } = useText();
  const shown = row === undefined ? undefined : data.rows[row];
  if (shown === undefined) return null;
  const total = shown.values.reduce((sum, each) => sum + each, 0n);
  return (
    <div className="min-w-44 rounded-xl bg-surface px-3.5 py-2.5 text-xs shadow-float">
      <p className="mb-1.5 font-medium">{shown.label}</p>
      <ul className="flex flex-col gap-1">
        {shown.values.map(
          (value, series) =>
            value !== 0n && (
              <li key={data.names[series]} className="flex items-center gap-2">
                <Dot series={series} />
                <span className="flex-1 text-muted">{data.names[series]}</span>
                <span className="tabular-nums">{data.metric.write(value)}</span>
              </li>
            ),
        )}
      </ul>
      <p className="mt-1.5 flex justify-between gap-4 border-t border-line pt-1.5 font-medium">
        <span>{usage.total}</span>
        <span className="tabular-nums">{data.metric.write(total)}</span>
      </p>
    </div>
  );
}

function Legend({ data: { names, sums, metric } }: { data: ChartData }) {
  return (
    <figcaption className="mt-3 flex flex-wrap gap-x-5 gap-y-1.5 px-2 text-xs">
      {names.map((name, series) => (
        <span key={name} className="inline-flex items-center gap-2">
          <Dot series={series} />
          <span className="text-muted">{name}</span>
          <span className="font-medium whitespace-nowrap tabular-nums">
            {metric.write(sums[series] ?? 0n)}
          </span>
        </span>
      ))}
    </figcaption>
  );
}

function Dot({ series }: { series: number }) {
  return (
    <svg aria-hidden="true" viewBox="0 0 8 8" className="size-2 shrink-0">
      <rect width="8" height="8" rx="2" fill={colour(series)} />
    </svg>
  );
}
