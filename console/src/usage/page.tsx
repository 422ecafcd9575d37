/** Usage: a metric by model or key over a time range, as a chart and as a table. */
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ChartColumn } from "lucide-react";
import { UsageGroup } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { useText } from "../common/language.tsx";
import { defined, metricNames, rangeNames, ranges, type UsageSearch } from "../common/search.ts";
import { dayAfter, localZone, wallIn, wallTime } from "../common/time.ts";
import { KeyFilter, useKeyNames } from "../keys/keys.tsx";
import { ModelFilter } from "../models/prices.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, Empty, Figure, PageHead } from "../ui/card.tsx";
import { saveFile } from "../ui/copy.tsx";
import { SelectField, TextField } from "../ui/field.tsx";
import { ZoneFilter } from "../ui/filter-bar.tsx";
import { metrics, usageCsv } from "./metric.ts";
import { UsagePanel } from "./panel.tsx";
import { buckets, daysOf, type UsageView, useUsage } from "./use-usage.ts";

const groups = { none: UsageGroup.NONE, model: UsageGroup.MODEL, key: UsageGroup.KEY } as const;

/** The view of a search, with an interval that fits the range if none is chosen. */
function viewOf(search: UsageSearch): UsageView {
  const { range = "30d", group = "model", bucket, model, key, from, to, zone } = search;
  const fitting = lengthOf(search) <= ranges["24h"] ? "hour" : "day";
  return {
    range,
    ...(from !== undefined && to !== undefined && { days: { from, to } }),
    ...(zone !== undefined && { zone }),
    group: groups[group],
    bucket: buckets[bucket ?? fitting],
    ...(model !== undefined && { model }),
    ...(key !== undefined && { keyId: key }),
  };
}

/** The length of the range or of the chosen days. */
function lengthOf({ range = "30d", from, to }: UsageSearch): number {
  if (from === undefined || to === undefined) return ranges[range];
  return daysOf({ from, to }) * ranges["24h"];
}

/** `/usage`. */
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
      <PageHead title={text.title} hint={common.withZone(text.hint, search.zone ?? localZone())} />
      <div className="flex flex-col gap-6">
        <Choices search={search} />
        <Totals view={view} />
        <UsagePanel
          title={text.metrics[metric]}
          view={view}
          metric={metrics[metric]}
          nameOf={nameOf}
          empty={<Empty icon={<ChartColumn />} title={text.none} hint={text.noneHint} />}
          actions={<Actions search={search} view={view} nameOf={nameOf} />}
        />
      </div>
    </>
  );
}

function Choices({ search }: { search: UsageSearch }) {
  const { usage: text, common } = useText();
  const navigate = useNavigate({ from: "/usage" });
  const set = (change: { [Name in keyof UsageSearch]: UsageSearch[Name] | undefined }): void =>
    void navigate({ search: defined({ ...search, ...change }), replace: true });
  const offered = rangeNames.filter((each) => ranges[each] >= ranges["24h"]);
  const isSpan = search.from !== undefined;
  const shown = { isLabelHidden: false, className: "" };
  return (
    <Card className="grid grid-cols-2 gap-3 p-4 sm:grid-cols-3 xl:grid-cols-4">
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
        value={isSpan ? "custom" : (search.range ?? "30d")}
        choices={[
          ...offered.map((value) => ({ value, label: common.ranges[value] })),
          { value: "custom" as const, label: common.customRange },
        ]}
        onChoose={(value) =>
          set(
            value === "custom"
              ? { ...lastDays(search), range: undefined, bucket: undefined }
              : { range: value, from: undefined, to: undefined, bucket: undefined },
          )
        }
      />
      <SelectField
        label={text.bucket}
        value={search.bucket ?? (lengthOf(search) <= ranges["24h"] ? "hour" : "day")}
        choices={(["hour", "day", "week", "month"] as const)
          .filter((each) => each !== "hour" || lengthOf(search) <= ranges["30d"])
          .map((value) => ({ value, label: text.buckets[value] }))}
        onChoose={(value) => set({ bucket: value })}
      />
      <ModelFilter {...shown} value={search.model} onChoose={(model) => set({ model })} />
      <KeyFilter {...shown} value={search.key} onChoose={(key) => set({ key })} />
      <ZoneFilter zone={search.zone} onChoose={(zone) => set({ zone })} />
      {isSpan && <DayFields search={search} onChoose={set} />}
    </Card>
  );
}

/** The days of the shown range, as the first choice of custom days. */
function lastDays({ range = "30d", zone = localZone() }: UsageSearch) {
  const today = wallIn(zone, Date.now()).slice(0, 10);
  return { from: dayAfter(today, 1 - ranges[range] / ranges["24h"]), to: today };
}

/** The first and the last day, in this order. */
function DayFields({
  search: { from = "", to = "" },
  onChoose,
}: {
  search: UsageSearch;
  onChoose: (days: { from: string; to: string; bucket: undefined }) => void;
}) {
  const { common } = useText();
  const choose = (days: { from: string; to: string }): void => {
    // A day that is being typed is incomplete.
    if (wallTime(days.from) === undefined || wallTime(days.to) === undefined) return;
    if (days.from <= days.to) onChoose({ ...days, bucket: undefined });
  };
  const day = { type: "date", required: true, className: "h-8 text-[0.8125rem]" } as const;
  return (
    <>
      <TextField
        {...day}
        label={common.firstDay}
        max={to}
        // Uncontrolled, because the browser's field keeps an incomplete day while it is typed.
        key={`from ${from}`}
        defaultValue={from}
        onBlur={(event) => choose({ from: event.target.value, to })}
      />
      <TextField
        {...day}
        label={common.lastDay}
        min={from}
        key={`to ${to}`}
        defaultValue={to}
        onBlur={(event) => choose({ from, to: event.target.value })}
      />
    </>
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

/** `+12 %`; `undefined` if there was nothing before. */
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
  const { range = "30d", model, key, from, to, zone } = search;
  const times = from !== undefined && to !== undefined ? { from, to: dayAfter(to) } : { range };
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
      <Link to="/calls" search={defined({ ...times, zone, model, key })} className={buttonClass()}>
        {text.seeCalls}
      </Link>
    </>
  );
}
