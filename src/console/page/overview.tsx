/** Overview: what is left, what was spent, what failed; and the first call. */
import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { CircleCheck } from "lucide-react";
import { CallOutcome, type CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { UsageBucket, UsageGroup } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { useBalance } from "../balance-chip.tsx";
import { EndingBadge } from "../call/ending.tsx";
import { useText } from "../language.tsx";
import { exactUsd, nanosOf, usd } from "../money.ts";
import { useAccountId } from "../session.tsx";
import { timestampOf } from "../time.ts";
import { buttonClass } from "../ui/button.tsx";
import { Card, CardHead, Empty, Figure, PageHead, Skeleton } from "../ui/card.tsx";
import { Amount, ErrorNote, Time } from "../ui/show.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { UsagePanel } from "../usage/panel.tsx";
import { type UsageView, useUsage } from "../usage/use-usage.ts";
import { FirstCall, useFirstCall } from "./first-call.tsx";

/** The page. */
export function OverviewPage() {
  const { overview } = useText();
  const { hadOne } = useFirstCall();
  return (
    <>
      <PageHead title={overview.title} />
      {/* What is above decides where the rest stands: until it is known, nothing is seen, and so nothing moves. */}
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
  const show = (isKnown: boolean, nanos: bigint) =>
    isKnown ? usd(nanos) : <Skeleton className="mt-2 h-6 w-24" />;
  return (
    <div className="grid grid-cols-2 gap-3 sm:gap-4 xl:grid-cols-4">
      <Figure
        label={overview.balance}
        value={show(balance.data !== undefined, available)}
        title={exactUsd(available)}
        note={
          balance.data !== undefined && available === 0n
            ? overview.topUpNote
            : daysLeft !== undefined && daysLeft < 1_000n && overview.daysLeft(String(daysLeft))
        }
      />
      <Figure
        label={overview.held}
        value={show(balance.data !== undefined, nanosOf(balance.data?.held))}
        title={exactUsd(nanosOf(balance.data?.held))}
        note={overview.heldNote}
      />
      <Figure
        label={overview.today}
        value={show(usage.data !== undefined, spentToday)}
        title={exactUsd(spentToday)}
        note={usage.data && overview.callsToday(callsToday)}
      />
      <Figure
        label={overview.month}
        value={show(usage.data !== undefined, total)}
        title={exactUsd(total)}
        note={usage.data && overview.callsToday(usage.data.totals?.callCount ?? 0n)}
      />
    </div>
  );
}

function Costs() {
  const { overview, shell } = useText();
  return (
    <UsagePanel
      title={overview.chart}
      hint={overview.chartHint}
      view={perDay}
      metric="cost"
      empty={<Empty title={overview.noUsage} hint={overview.noUsageHint} />}
      actions={
        <Link to="/usage" className={buttonClass()}>
          {shell.usage}
        </Link>
      }
    />
  );
}

/** How many failures the overview shows, and of how many milliseconds. */
const failuresMax = 5;
const failuresMs = 7 * 86_400_000;

/** Rounded, so that the query stays the same one while the page is open. */
function failuresSince(): ReturnType<typeof timestampOf> {
  return timestampOf(Math.floor((Date.now() - failuresMs) / 3_600_000) * 3_600_000);
}

function Failures() {
  const { overview, common, calls } = useText();
  const accountId = useAccountId();
  const { data, error, refetch } = useQuery(CallService.method.listCalls, {
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
    { id: "path", title: calls.path, from: "md", cell: ({ path }) => path },
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
      {error === null ? (
        <Table
          label={overview.errors}
          columns={columns}
          rows={data?.calls}
          keyOf={({ callId }) => callId}
          empty={
            <Empty icon={<CircleCheck />} title={overview.noErrors} hint={overview.noErrorsHint} />
          }
        />
      ) : (
        <div className="p-5">
          <ErrorNote error={error} onRetry={() => void refetch()} />
        </div>
      )}
    </Card>
  );
}
