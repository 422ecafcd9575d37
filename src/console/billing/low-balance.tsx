/** Says that the balance is below the alert that was set. */
import { Link } from "@tanstack/react-router";
import { TriangleAlert } from "lucide-react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import type { Balance } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { useBalance } from "../balance-chip.tsx";
import { useText } from "../language.tsx";
import { nanosOf, usd } from "../money.ts";
import { useSession } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";

/** Whether all money of an account, what is held included, is less than its alert. */
export function isLow(
  { lowBalanceThreshold }: Account,
  balance: Pick<Balance, "balance"> | undefined,
): boolean {
  if (lowBalanceThreshold === undefined || balance === undefined) return false;
  return nanosOf(balance.balance) < nanosOf(lowBalanceThreshold);
}

/** The notice for whoever is signed in; nothing while there is enough. */
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

/** The word for lists of accounts; nothing while there is enough. */
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
