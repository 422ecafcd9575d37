/** The numbers of a chart, for those who want or need them as such. */
import { useText } from "../language.tsx";
import type { ChartData } from "./panel.tsx";

/** The table: newest first, only buckets in which something happened. */
export function UsageTable({ data: { names, rows, sums, metric } }: { data: ChartData }) {
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
