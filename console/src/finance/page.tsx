/**
 * Operators' revenue, costs and losses: by model, vendor or account over a time range, as figures,
 * a chart and a table.
 */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ChartColumn } from "lucide-react";
import {
  UsageGroup,
  type UsageSeries,
  type UsageTotals,
} from "../../../gen/uas/billing/v1/usage_pb.ts";
import { useAccountNames } from "../accounts/account.tsx";
import { useText } from "../common/language.tsx";
import {
  defined,
  figureNames,
  type FinanceSearch,
  type FigureName,
  rangeNames,
  ranges,
} from "../common/search.ts";
import { localZone } from "../common/time.ts";
import { Card, CardHead, Empty, MoneyFigure, PageHead } from "../ui/card.tsx";
import { SelectField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { figures, uncosted } from "../usage/metric.ts";
import { usd } from "../common/money.ts";
import { UsagePanel } from "../usage/panel.tsx";
import { buckets, type UsageView, useUsage } from "../usage/use-usage.ts";

const groups = {
  model: UsageGroup.MODEL,
  vendor: UsageGroup.VENDOR,
  account: UsageGroup.ACCOUNT,
} as const;

/** All accounts, in requests for usage. */
const allAccounts = "";

function fittingBucket({ range = "30d" }: FinanceSearch): keyof typeof buckets {
  return ranges[range] <= ranges["24h"] ? "hour" : "day";
}

/** `/finance`, for operators. */
export function FinancePage() {
  const { finance: text, common } = useText();
  const search = useSearch({ from: "/inside/operator/finance" });
  const { range = "30d", group = "model", figure = "revenue" } = search;
  const accountNames = useAccountNames(group === "account");
  const bucket = buckets[search.bucket ?? fittingBucket(search)];
  const view: UsageView = { range, bucket, group: groups[group] };
  const nameOf = (name: string): string => accountNames.get(name) ?? name;
  return (
    <>
      <PageHead title={text.title} hint={common.withZone(text.hint, localZone())} />
      <div className="flex flex-col gap-6">
        <Choices search={search} />
        <Figures view={view} />
        <UsagePanel
          title={text.figures[figure]}
          hint={text.unknownCosts}
          view={view}
          metric={figures[figure]}
          accountId={allAccounts}
          nameOf={nameOf}
          empty={<Empty icon={<ChartColumn />} title={text.none} />}
        />
        <Groups view={view} title={text.groups[group]} nameOf={nameOf} />
      </div>
    </>
  );
}

function Choices({ search }: { search: FinanceSearch }) {
  const { finance: text, usage, common } = useText();
  const navigate = useNavigate({ from: "/finance" });
  const set = (
    change: {
      [Name in keyof FinanceSearch]: FinanceSearch[Name] | undefined;
    },
  ): void => void navigate({ search: defined({ ...search, ...change }), replace: true });
  const offered = rangeNames.filter((each) => ranges[each] >= ranges["24h"]);
  return (
    <Card className="grid grid-cols-2 gap-3 p-4 xl:grid-cols-4">
      <SelectField
        label={text.figure}
        value={search.figure ?? "revenue"}
        choices={figureNames.map((value) => ({ value, label: text.figures[value] }))}
        onChoose={(figure) => set({ figure })}
      />
      <SelectField
        label={text.group}
        value={search.group ?? "model"}
        choices={(["model", "vendor", "account"] as const).map((value) => ({
          value,
          label: text.groups[value],
        }))}
        onChoose={(group) => set({ group })}
      />
      <SelectField
        label={common.range}
        value={search.range ?? "30d"}
        choices={offered.map((value) => ({ value, label: common.ranges[value] }))}
        onChoose={(range) => set({ range, bucket: undefined })}
      />
      <SelectField
        label={usage.bucket}
        value={search.bucket ?? fittingBucket(search)}
        choices={(["hour", "day", "week", "month"] as const)
          .filter((each) => each !== "hour" || ranges[search.range ?? "30d"] <= ranges["30d"])
          .map((value) => ({ value, label: usage.buckets[value] }))}
        onChoose={(bucket) => set({ bucket })}
      />
    </Card>
  );
}

/** The sums of the range. */
function Figures({ view }: { view: UsageView }) {
  const { finance: text } = useText();
  const { data } = useUsage(view, allAccounts);
  const noteOf = (name: FigureName): string => {
    if (name === "revenue" && data !== undefined && uncosted.of(data.totals) !== 0n) {
      return text.uncosted(usd(uncosted.of(data.totals)));
    }
    if (name !== "margin") return text.notes[name];
    const share = marginShare(data?.totals);
    return share === undefined ? "" : text.notes.margin(share);
  };
  return (
    <div className="grid grid-cols-1 gap-4 sm:grid-cols-2 lg:grid-cols-5">
      {figureNames.map((name) => (
        <MoneyFigure
          key={name}
          label={text.figures[name]}
          nanos={data && figures[name].of(data.totals)}
          note={noteOf(name)}
        />
      ))}
    </div>
  );
}

/** Whether no vendor cost of the calls is known, so that a 0 would look like one. */
function isCostUnknown(totals: UsageTotals | undefined): boolean {
  const unknown = uncosted.of(totals);
  return unknown !== 0n && unknown === figures.revenue.of(totals);
}

/** The margin as a part of the revenue with known costs, as `12.3 %`; undefined without any. */
function marginShare(totals: UsageTotals | undefined): string | undefined {
  const revenue = figures.revenue.of(totals) - uncosted.of(totals);
  if (revenue === 0n) return undefined;
  const permille = Number((figures.margin.of(totals) * 1_000n) / revenue);
  const percent = (permille / 10).toLocaleString("en-US", { minimumFractionDigits: 1 });
  return `${percent.replace("-", "−")} %`;
}

/** The figures of each group. */
function Groups({
  view,
  title,
  nameOf,
}: {
  view: UsageView;
  title: string;
  nameOf: (group: string) => string;
}) {
  const { finance: text, usage } = useText();
  const { data, error, refetch } = useUsage(view, allAccounts);
  const columns: Column<UsageSeries>[] = [
    {
      id: "group",
      title,
      cell: ({ group, rest }) => (rest ? usage.rest : nameOf(group) || "—"),
    },
    figureColumn("revenue", text.figures.revenue),
    figureColumn("vendorCost", text.figures.vendorCost, "sm"),
    figureColumn("attempts", text.figures.attempts, "lg"),
    figureColumn("loss", text.figures.loss, "md"),
    figureColumn("margin", text.figures.margin),
    {
      id: "share",
      title: text.share,
      isNumber: true,
      from: "sm",
      cell: ({ totals }) => marginShare(totals) ?? "—",
    },
  ];
  return (
    <Card className="min-w-0">
      <CardHead title={text.table} />
      {error === null ? (
        <Table
          label={text.table}
          columns={columns}
          rows={data?.series.filter(hasMoney)}
          keyOf={({ group, rest }) => `${rest} ${group}`}
          empty={text.none}
        />
      ) : (
        <div className="p-5">
          <ErrorNote error={error} onRetry={() => void refetch()} />
        </div>
      )}
    </Card>
  );
}

/**
 * Whether calls of a group had a cost. Refused calls of unknown models, for example, have no name.
 */
function hasMoney({ totals }: UsageSeries): boolean {
  return figureNames.some((name) => figures[name].of(totals) !== 0n);
}

/** The figures that are not known without a vendor cost. */
const needCost: ReadonlySet<FigureName> = new Set(["vendorCost", "margin"]);

function figureColumn(
  name: FigureName,
  title: string,
  from?: Column<UsageSeries>["from"],
): Column<UsageSeries> {
  const { of, write, exact } = figures[name];
  return {
    id: name,
    title,
    isNumber: true,
    ...(from !== undefined && { from }),
    cell: ({ totals }) => {
      const nanos = of(totals);
      if (needCost.has(name) && isCostUnknown(totals)) return "—";
      return (
        <span title={exact(nanos)} className={nanos < 0n ? "text-bad" : ""}>
          {write(nanos)}
        </span>
      );
    },
  };
}
