/** What an account has and spends, in figures. */
import { useQuery } from "@connectrpc/connect-query";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { UsageBucket, UsageGroup } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { useText } from "../language.tsx";
import { exactUsd, nanosOf, usd } from "../money.ts";
import { Figure, Skeleton } from "../ui/card.tsx";
import { type UsageView, useUsage } from "../usage/use-usage.ts";

const lastMonth: UsageView = { range: "30d", bucket: UsageBucket.DAY, group: UsageGroup.NONE };

/** The figures. */
export function AccountFigures({ accountId }: { accountId: string }) {
  const {
    operator: { accounts: text },
    billing,
  } = useText();
  const { data } = useQuery(BillingService.method.getBalance, { accountId });
  const usage = useUsage(lastMonth, accountId);
  const has = data?.balance;
  const spent = usage.data?.totals;
  const figures = [
    { label: text.balance, money: has && nanosOf(has.balance), note: text.balanceNote },
    { label: text.available, money: has && nanosOf(has.available), note: billing.availableNote },
    { label: text.held, money: has && nanosOf(has.held), note: billing.heldNote },
    {
      label: text.month,
      money: usage.data && nanosOf(spent?.cost),
      note: usage.data && text.monthCalls((spent?.callCount ?? 0n).toLocaleString()),
    },
  ];
  return (
    <div className="grid grid-cols-1 gap-4 sm:grid-cols-2 xl:grid-cols-4">
      {figures.map(({ label, money, note }) => (
        <Figure
          key={label}
          label={label}
          value={money === undefined ? <Skeleton className="mt-2 h-6 w-24" /> : usd(money)}
          {...(money !== undefined && { title: exactUsd(money) })}
          note={note}
        />
      ))}
    </div>
  );
}
