/** Overview: balance, costs and failures; at the beginning, the first call. */
import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { CircleCheck } from "lucide-react";
import { CallOutcome, type CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { UsageBucket, UsageGroup } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { useBalance } from "../billing/balance.tsx";
import { EndingBadge } from "../calls/columns.tsx";
import { useText } from "../common/language.tsx";
import { nanosOf } from "../common/money.ts";
import { useAccountId } from "../common/session.tsx";
import { timestampOf } from "../common/time.ts";
import { buttonClass } from "../ui/button.tsx";
import { Card, CardHead, Empty, MoneyFigure, PageHead } from "../ui/card.tsx";
import { Amount, Time } from "../ui/show.tsx";
import { type Column, QueryTable } from "../ui/table.tsx";
import { metrics } from "../usage/metric.ts";
import { UsagePanel } from "../usage/panel.tsx";
import { type UsageView, useUsage } from "../usage/use-usage.ts";
import { useFirstCall, FirstCall } from "./first-call.tsx";

/** `/`. */
export function OverviewPage() {
  const { overview } = useText();
  const { hadOne } = useFirstCall();
  return (
    <>
      <PageHead title={overview.title} />
      {/* The top decides the position of the rest, so nothing is shown until it is known. */}
      <div className={clsx("flex flex-col gap-6", hadOne === undefined && "invisible")}>
        {hadOne === false && <FirstCall />}
        <Figures />
        <Costs />
        <Failures />
      </div>
    </>
  );
}

const perDay: UsageView = {
  range: "30d",
  bucket: UsageBucket.DAY,
  group: UsageGroup.MODEL,
};

function Figures() {
  const { overview } = useText();
  const balance = useBalance();
  const usage = useUsage(perDay);
  const total = nanosOf(usage.data?.totals?.cost);
  const last = (usage.data?.bucketTimes.length ?? 0) - 1;
  const today = (usage.data?.series ?? []).flatMap(({ points }) =>
    points.filter(({ bucket }) => bucket === last),
  );
  const spentToday = today.reduce((sum, { totals }) => sum + nanosOf(totals?.cost), 0n);
  const callsToday = today.reduce((sum, { totals }) => sum + (totals?.callCount ?? 0n), 0n);
  const available = nanosOf(balance.data?.available);
  const daysLeft = total > 0n ? (available * 30n) / total : undefined;
  return (
    <div className="grid grid-cols-2 gap-3 sm:gap-4 xl:grid-cols-4">
      <MoneyFigure
        label={overview.balance}
        nanos={balance.data && available}
        note={
          balance.data !== undefined && available === 0n
            ? overview.topUpNote
            : daysLeft !== undefined && daysLeft < 1_000n && overview.daysLeft(String(daysLeft))
        }
      />
      <MoneyFigure
        label={overview.held}
        nanos={balance.data && nanosOf(balance.data.held)}
        note={overview.heldNote}
      />
      <MoneyFigure
        label={overview.today}
        nanos={usage.data && spentToday}
        note={usage.data && overview.callCount(callsToday)}
      />
      <MoneyFigure
        label={overview.month}
        nanos={usage.data && total}
        note={usage.data && overview.callCount(usage.data.totals?.callCount ?? 0n)}
      />
    </div>
  );
}

function Costs() {
  const { overview, layout } = useText();
  return (
    <UsagePanel
      title={overview.chart}
      hint={overview.chartHint}
      view={perDay}
      metric={metrics.cost}
      empty={<Empty title={overview.noUsage} hint={overview.noUsageHint} />}
      actions={
        <Link to="/usage" className={buttonClass()}>
          {layout.usage}
        </Link>
      }
    />
  );
}

/** Maximum number of failures that are shown, and their maximum age in milliseconds. */
const failuresMax = 5;
const failuresMs = 7 * 86_400_000;

/** Rounded to the hour, so that the query stays the same while the page is open. */
function failuresSince(): ReturnType<typeof timestampOf> {
  return timestampOf(Math.floor((Date.now() - failuresMs) / 3_600_000) * 3_600_000);
}

function Failures() {
  const { overview, common, calls } = useText();
  const accountId = useAccountId();
  const query = useQuery(CallService.method.listCalls, {
    accountId,
    pageSize: failuresMax,
    filter: { outcome: CallOutcome.FAILED, fromTime: failuresSince() },
  });
  const columns: Column<CallRecord>[] = [
    {
      id: "time",
      title: common.time,
      cell: ({ callId, startTime }) => (
        <Link to="/calls" search={{ call: callId }} className="font-medium hover:underline">
          <Time isRelative time={startTime} />
        </Link>
      ),
    },
    { id: "status", title: common.status, cell: (call) => <EndingBadge call={call} /> },
    {
      id: "model",
      title: common.model,
      cell: ({ model }) => <span className="font-mono text-xs">{model || "—"}</span>,
    },
    { id: "path", title: calls.fields.path, from: "md", cell: ({ path }) => path },
    { id: "cost", title: common.cost, isNumber: true, cell: ({ cost }) => <Amount money={cost} /> },
  ];
  return (
    <Card>
      <CardHead
        title={overview.errors}
        hint={overview.errorsHint}
        actions={
          <Link to="/calls" search={{ outcome: "failed", range: "7d" }} className={buttonClass()}>
            {overview.allFailures}
          </Link>
        }
      />
      <QueryTable
        query={query}
        label={overview.errors}
        columns={columns}
        rows={query.data?.calls}
        keyOf={({ callId }) => callId}
        empty={
          <Empty icon={<CircleCheck />} title={overview.noErrors} hint={overview.noErrorsHint} />
        }
      />
    </Card>
  );
}
