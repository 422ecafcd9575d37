/** Usage: any metric, by anything, over any range; as a chart and as a table. */
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ChartColumn } from "lucide-react";
import { useKeyNames } from "../key/use-keys.ts";
import { useText } from "../language.tsx";
import { usePrices } from "../models.ts";
import { defined, type RangeName, ranges, type UsageSearch } from "../search.ts";
import { localZone } from "../time.ts";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, Empty, Figure, PageHead } from "../ui/card.tsx";
import { saveFile } from "../ui/save-file.ts";
import { SelectField } from "../ui/select.tsx";
import { usageCsv } from "../usage/csv.ts";
import { metricNames, metrics } from "../usage/metric.ts";
import { UsagePanel } from "../usage/panel.tsx";
import { UsageBucket, UsageGroup, type UsageView, useUsage } from "../usage/use-usage.ts";

const groups = { none: UsageGroup.NONE, model: UsageGroup.MODEL, key: UsageGroup.KEY } as const;
const buckets = {
  hour: UsageBucket.HOUR,
  day: UsageBucket.DAY,
  week: UsageBucket.WEEK,
  month: UsageBucket.MONTH,
} as const;

/** The range, with the bucket that fits it where none is chosen. */
function viewOf(search: UsageSearch): UsageView {
  const { range = "30d", group = "model", bucket, model, key } = search;
  const fitting = ranges[range] <= ranges["24h"] ? "hour" : "day";
  return {
    range,
    group: groups[group],
    bucket: buckets[bucket ?? fitting],
    ...(model !== undefined && { model }),
    ...(key !== undefined && { keyId: key }),
  };
}

/** The page. */
export function UsagePage() {
  const { usage: text, common } = useText();
  const search = useSearch({ from: "/inside/usage" });
  const keyNames = useKeyNames();
  const view = viewOf(search);
  const metric = search.metric ?? "cost";
  const nameOf = (group: string): string =>
    view.group === UsageGroup.KEY ? (keyNames.get(group) ?? group) : group;
  return (
    <>
      <PageHead title={text.title} hint={`${text.hint} ${common.zoneNote(localZone())}`} />
      <div className="flex flex-col gap-6">
        <Choices search={search} />
        <Totals view={view} />
        <UsagePanel
          title={text.metrics[metric]}
          view={view}
          metric={metric}
          nameOf={nameOf}
          empty={<Empty icon={<ChartColumn />} title={text.none} hint={text.noneHint} />}
          actions={<Actions search={search} view={view} nameOf={nameOf} />}
        />
      </div>
    </>
  );
}

function Choices({ search }: { search: UsageSearch }) {
  const { usage: text, common, calls } = useText();
  const navigate = useNavigate({ from: "/usage" });
  const prices = usePrices();
  const keyNames = useKeyNames();
  const set = (change: { [Name in keyof UsageSearch]: UsageSearch[Name] | undefined }): void =>
    void navigate({ search: defined({ ...search, ...change }), replace: true });
  const rangeNames = (Object.keys(ranges) as RangeName[]).filter(
    (each) => ranges[each] >= ranges["24h"],
  );
  const models = (prices.data ?? []).map(({ modelKey }) => ({ value: modelKey, label: modelKey }));
  const keys = [...keyNames].map(([value, label]) => ({ value, label }));
  return (
    <Card className="grid grid-cols-2 gap-3 p-4 sm:grid-cols-3 xl:grid-cols-6">
      <SelectField
        label={text.metric}
        value={search.metric ?? "cost"}
        choices={metricNames.map((value) => ({ value, label: text.metrics[value] }))}
        onChoose={(value) => set({ metric: value })}
      />
      <SelectField
        label={text.group}
        value={search.group ?? "model"}
        choices={(["model", "key", "none"] as const).map((value) => ({
          value,
          label: text.groups[value],
        }))}
        onChoose={(value) => set({ group: value })}
      />
      <SelectField
        label={common.range}
        value={search.range ?? "30d"}
        choices={rangeNames.map((value) => ({ value, label: common.ranges[value] }))}
        onChoose={(value) => set({ range: value, bucket: undefined })}
      />
      <SelectField
        label={text.bucket}
        value={search.bucket ?? ((search.range ?? "30d") === "24h" ? "hour" : "day")}
        choices={(["hour", "day", "week", "month"] as const)
          .filter((each) => each !== "hour" || ranges[search.range ?? "30d"] <= ranges["30d"])
          .map((value) => ({ value, label: text.buckets[value] }))}
        onChoose={(value) => set({ bucket: value })}
      />
      <SelectField
        label={common.model}
        value={search.model ?? ""}
        choices={[{ value: "", label: calls.anyModel }, ...models]}
        onChoose={(value) => set({ model: value || undefined })}
      />
      <SelectField
        label={common.key}
        value={search.key ?? ""}
        choices={[{ value: "", label: calls.anyKey }, ...keys]}
        onChoose={(value) => set({ key: value || undefined })}
      />
    </Card>
  );
}

function Totals({ view }: { view: UsageView }) {
  const { usage: text } = useText();
  const now = useUsage(view);
  const before = useUsage({ ...view, back: 1 });
  return (
    <div className="grid grid-cols-1 gap-4 sm:grid-cols-3">
      {(["cost", "calls", "tokens"] as const).map((name) => {
        const { of, write, exact } = metrics[name];
        const value = of(now.data?.totals);
        const change = changeText(value, of(before.data?.totals));
        return (
          <Figure
            key={name}
            label={text.metrics[name]}
            value={now.data === undefined ? "…" : write(value)}
            title={exact(value)}
            note={change !== undefined && before.data !== undefined && text.compared(change)}
          />
        );
      })}
    </div>
  );
}

/** `+12 %`; `undefined` where there was nothing before. */
function changeText(now: bigint, before: bigint): string | undefined {
  if (before === 0n) return undefined;
  const percent = Math.round((Number(now - before) / Number(before)) * 100);
  return `${percent > 0 ? "+" : percent < 0 ? "−" : "±"}${Math.abs(percent)} %`;
}

function Actions({
  search,
  view,
  nameOf,
}: {
  search: UsageSearch;
  view: UsageView;
  nameOf: (group: string) => string;
}) {
  const { usage: text } = useText();
  const { data } = useUsage(view);
  const { range = "30d", model, key } = search;
  return (
    <>
      <Button
        disabled={data === undefined}
        onClick={() =>
          data && saveFile("usage.csv", new Blob([usageCsv(data, nameOf)], { type: "text/csv" }))
        }
      >
        {text.download}
      </Button>
      <Link to="/calls" search={defined({ range, model, key })} className={buttonClass()}>
        {text.seeCalls}
      </Link>
    </>
  );
}
