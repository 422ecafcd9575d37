/** What is left, always in sight. */
import { useQuery } from "@connectrpc/connect-query";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { useText } from "./language.tsx";
import { exactUsd, nanosOf, usd } from "./money.ts";
import { useAccountId } from "./session.tsx";

/** How often the balance is asked for while nothing else asks, in milliseconds. */
const refreshMs = 30_000;

/** The balance of the account. */
export function useBalance() {
  const accountId = useAccountId();
  return useQuery(
    BillingService.method.getBalance,
    { accountId },
    { refetchInterval: refreshMs, select: ({ balance }) => balance },
  );
}

/** The available money, in the frame. */
export function BalanceChip() {
  const { shell } = useText();
  const { data } = useBalance();
  if (data === undefined) return <span className="w-20" />;
  const nanos = nanosOf(data.available);
  return (
    <span
      title={`${shell.available}: ${exactUsd(nanos)}`}
      className="mr-1 rounded-full border border-line bg-surface px-3 py-1 text-[0.8125rem] font-medium tabular-nums"
    >
      <span className="sr-only">{shell.available} </span>
      {usd(nanos)}
    </span>
  );
}
