/** The effect of a draft on recorded calls: revenue and margin that they would have had. */
import { useMutation } from "@connectrpc/connect-query";
import type { PlanGroup, PlanSums } from "../../../gen/uas/config/v1/config_pb.ts";
import {
  ConfigService,
  type PlanConfigResponse,
} from "../../../gen/uas/config/v1/config_service_pb.ts";
import { longUsd, nanosOf, usd } from "../common/money.ts";
import { Button } from "../ui/button.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { Table } from "../ui/table.tsx";
import { useConfigurationText } from "./text.ts";

/** The most customers that are shown. */
const customersMax = 10;

/** Prices the calls of the last 30 days again under a document, when its reader wants to know. */
export function Plan({ document }: { document: string }) {
  const text = useConfigurationText();
  const plan = useMutation(ConfigService.method.planConfig);
  return (
    <section className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-3">
        <Button isBusy={plan.isPending} onClick={() => plan.mutate({ document })}>
          {text.plan}
        </Button>
        <span className="text-xs text-muted">{text.planHint}</span>
      </div>
      <ErrorNote error={plan.error} />
      {plan.data !== undefined && <Outcome plan={plan.data} />}
    </section>
  );
}

function Outcome({
  plan: { total, models, accounts, removedCalls },
}: {
  plan: PlanConfigResponse;
}) {
  const text = useConfigurationText();
  if (total === undefined || total.calls === 0n) {
    return <p className="text-[0.8125rem] text-muted">{text.planNone}</p>;
  }
  const [before, after] = [nanosOf(total.revenueBefore), nanosOf(total.revenueAfter)];
  return (
    <>
      <p className="text-[0.8125rem]" role="status">
        {text.planOf(total.calls, longUsd(before), longUsd(after))}
      </p>
      {removedCalls > 0n && (
        <p className="text-[0.8125rem] text-warn">{text.planRemoved(removedCalls)}</p>
      )}
      <Groups label={text.planModels} groups={models} />
      <Groups label={text.planCustomers} groups={accounts.slice(0, customersMax)} />
    </>
  );
}

function Groups({ label, groups }: { label: string; groups: readonly PlanGroup[] }) {
  const text = useConfigurationText();
  return (
    <div className="-mx-6">
      <Table
        label={label}
        columns={[
          { id: "name", title: label, cell: ({ name, key }: PlanGroup) => name || key },
          {
            id: "before",
            title: text.planRevenue,
            isNumber: true,
            cell: ({ sums }) => usd(nanosOf(sums?.revenueBefore)),
          },
          {
            id: "after",
            title: text.planThen,
            isNumber: true,
            cell: ({ sums }) => usd(nanosOf(sums?.revenueAfter)),
          },
          {
            id: "margin",
            title: text.planMargin,
            isNumber: true,
            from: "sm",
            cell: ({ sums }) => marginOf(sums),
          },
        ]}
        rows={groups}
        keyOf={({ key }) => key}
        empty={null}
      />
    </div>
  );
}

/** The margin before and after, of calls whose vendor cost is known; a dash if there is none. */
function marginOf(sums: PlanSums | undefined): string {
  if (sums === undefined || sums.costedCalls === 0n) return "–";
  const before = nanosOf(sums.costedRevenueBefore) - nanosOf(sums.vendorCostBefore);
  const after = nanosOf(sums.costedRevenueAfter) - nanosOf(sums.vendorCostAfter);
  return `${usd(before)} → ${usd(after)}`;
}
