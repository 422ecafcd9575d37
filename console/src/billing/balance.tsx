/** The balance of the account, always in sight, and the notice that it is low. */
import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { TriangleAlert } from "lucide-react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import type { Balance } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { useText } from "../common/language.tsx";
import { exactUsd, nanosOf, usd } from "../common/money.ts";
import { useAccountId, useSession } from "../common/session.tsx";
import { MoneyFigure } from "../ui/card.tsx";
import { Badge } from "../ui/show.tsx";

/** Refresh interval of the balance. */
const refreshMs = 30_000;

/** The balance of the user's account. */
export function useBalance() {
  const accountId = useAccountId();
  return useQuery(
    BillingService.method.getBalance,
    { accountId },
    { refetchInterval: refreshMs, select: ({ balance }) => balance },
  );
}

/** The available balance, in the header of every page. */
export function BalanceChip() {
  const { layout } = useText();
  const { data } = useBalance();
  if (data === undefined) return <span className="w-20" />;
  const nanos = nanosOf(data.available);
  return (
    <span
      title={`${layout.available}: ${exactUsd(nanos)}`}
      className="mr-1 rounded-full border border-line bg-surface px-3 py-1 text-[0.8125rem] font-medium tabular-nums"
    >
      <span className="sr-only">{layout.available} </span>
      {usd(nanos)}
    </span>
  );
}

/**
 * The total, available and held balance of an account, as figures.
 *
 * @param balance undefined while it is loaded
 */
export function BalanceFigures({ balance }: { balance: Balance | undefined }) {
  const { billing: text } = useText();
  return (
    <>
      <MoneyFigure
        label={text.balance}
        nanos={balance && nanosOf(balance.balance)}
        note={text.balanceNote}
      />
      <MoneyFigure
        label={text.available}
        nanos={balance && nanosOf(balance.available)}
        note={text.availableNote}
      />
      <MoneyFigure
        label={text.held}
        nanos={balance && nanosOf(balance.held)}
        note={text.heldNote}
      />
    </>
  );
}

/** Whether the balance of an account, held amounts included, is below its alert. */
function isLow(
  { lowBalanceThreshold }: Account,
  balance: Pick<Balance, "balance"> | undefined,
): boolean {
  if (lowBalanceThreshold === undefined || balance === undefined) return false;
  return nanosOf(balance.balance) < nanosOf(lowBalanceThreshold);
}

/** The notice that the balance is below its alert; nothing while there is enough. */
export function LowBalanceNote() {
  const { billing: text } = useText();
  const { account } = useSession();
  const { data } = useBalance();
  if (!isLow(account, data)) return null;
  return (
    <div
      role="status"
      className="mb-6 flex flex-wrap items-center gap-3 rounded-xl bg-warn-soft px-4 py-3 text-warn"
    >
      <TriangleAlert aria-hidden="true" className="size-4 shrink-0" />
      <p className="min-w-0 flex-1">
        {text.low(usd(nanosOf(account.lowBalanceThreshold)))}{" "}
        <Link to="/billing" className="font-medium underline underline-offset-4">
          {text.topUp}
        </Link>
      </p>
    </div>
  );
}

/** The same in lists of accounts. */
export function LowBalanceBadge({
  account,
  balance,
}: {
  account: Account;
  balance: Balance | undefined;
}) {
  const { billing: text } = useText();
  return isLow(account, balance) ? <Badge tone="warn">{text.lowBadge}</Badge> : null;
}
