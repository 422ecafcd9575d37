/** Billing: what is left, the alert, and every movement. */
import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Wallet } from "lucide-react";
import { type FormEvent, useState } from "react";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { type LedgerEntry, LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { useBalance } from "../balance-chip.tsx";
import { useText } from "../language.tsx";
import { exactUsd, moneyOf, nanosOf, parseUsd, usd } from "../money.ts";
import { useAccountId, useSession } from "../session.tsx";
import { localZone } from "../time.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty, Figure, PageHead, Skeleton } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { TextField } from "../ui/field.tsx";
import { Amount, ErrorNote, Time } from "../ui/show.tsx";
import { type Column, MoreRows, Table } from "../ui/table.tsx";
import { useToast } from "../ui/toast.tsx";

/** How many movements a page of the ledger has. */
const pageSize = 50;

/** The page. */
export function BillingPage() {
  const { billing: text, common } = useText();
  const accountId = useAccountId();
  return (
    <>
      <PageHead title={text.title} hint={`${text.hint} ${common.zoneNote(localZone())}`} />
      <div className="flex flex-col gap-6">
        <Figures />
        <div className="grid grid-cols-1 gap-6 lg:grid-cols-2">
          <TopUpCard />
          <AlertCard />
        </div>
        <Ledger accountId={accountId} />
      </div>
    </>
  );
}

function Figures() {
  const { billing: text } = useText();
  const { data } = useBalance();
  const rows = [
    [text.balance, data?.balance, text.balanceNote],
    [text.available, data?.available, text.availableNote],
    [text.held, data?.held, text.heldNote],
  ] as const;
  return (
    <div className="grid grid-cols-1 gap-4 sm:grid-cols-3">
      {rows.map(([label, money, note]) => (
        <Figure
          key={label}
          label={label}
          value={data === undefined ? <Skeleton className="mt-2 h-6 w-24" /> : usd(nanosOf(money))}
          title={exactUsd(nanosOf(money))}
          note={note}
        />
      ))}
    </div>
  );
}

function TopUpCard() {
  const { billing: text } = useText();
  const { account } = useSession();
  return (
    <Card>
      <CardHead title={text.topUp} hint={text.topUpHint} />
      <div className="px-5 pb-5">
        <Id isWhole value={account.accountId} />
      </div>
    </Card>
  );
}

function AlertCard() {
  const { billing: text, common } = useText();
  const { account } = useSession();
  const toast = useToast();
  const queries = useQueryClient();
  const present = account.lowBalanceThreshold;
  const written = present === undefined ? "" : exactUsd(nanosOf(present)).replace(" USD", "");
  const [amount, setAmount] = useState(written);
  const update = useMutation(AccountService.method.updateAccount, {
    onSuccess: async () => {
      toast({ title: text.alertSaved });
      await queries.invalidateQueries();
    },
  });
  const nanos = amount.trim() === "" ? undefined : parseUsd(amount);
  const isWrong = amount.trim() !== "" && (nanos ?? 0n) <= 0n;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (isWrong) return;
    const { accountId } = account;
    update.mutate({
      account: { accountId, ...(nanos !== undefined && { lowBalanceThreshold: moneyOf(nanos) }) },
      updateMask: { paths: ["low_balance_threshold"] },
    });
  };
  return (
    <Card>
      <CardHead title={text.alert} hint={text.alertHint} />
      <form onSubmit={submit} className="flex flex-wrap items-start gap-3 px-5 pb-5">
        <div className="min-w-40 flex-1">
          <TextField
            label={text.alertAmount}
            isLabelHidden
            hint={text.alertOff}
            error={isWrong ? text.amountWrong : undefined}
            value={amount}
            inputMode="decimal"
            placeholder="5.00"
            onChange={(event) => setAmount(event.target.value)}
          />
        </div>
        <Button
          type="submit"
          size="medium"
          isBusy={update.isPending}
          disabled={amount.trim() === written}
        >
          {common.save}
        </Button>
        <ErrorNote error={update.error} />
      </form>
    </Card>
  );
}

/** The movements of an account. */
export function Ledger({ accountId }: { accountId: string }) {
  const { billing: text, common } = useText();
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    BillingService.method.listLedgerEntries,
    { accountId, pageSize, pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
    },
  );
  const columns: Column<LedgerEntry>[] = [
    { id: "time", title: common.time, cell: ({ createTime }) => <Time time={createTime} /> },
    { id: "kind", title: text.kind, cell: ({ kind }) => text.kinds[kind] },
    {
      id: "amount",
      title: text.amount,
      isNumber: true,
      cell: ({ amount }) => (
        <span className={nanosOf(amount) > 0n ? "text-good" : ""}>
          <Amount isSigned money={amount} />
        </span>
      ),
    },
    {
      id: "after",
      title: text.after,
      isNumber: true,
      from: "sm",
      cell: ({ balanceAfter }) => <Amount isExact money={balanceAfter} />,
    },
    {
      id: "note",
      title: text.note,
      from: "md",
      cell: ({ kind, transactionId, reason, reference }) =>
        kind === LedgerKind.CHARGE ? (
          <Link
            to="/calls"
            search={{ call: transactionId }}
            className="text-accent underline underline-offset-4"
          >
            {text.call}
          </Link>
        ) : (
          <span className="block max-w-80 truncate text-muted" title={reason || reference}>
            {reason || reference}
          </span>
        ),
    },
  ];
  return (
    <Card>
      <CardHead title={text.ledger} hint={text.ledgerHint} />
      {error === null ? (
        <Table
          label={text.ledger}
          columns={columns}
          rows={data?.pages.flatMap(({ entries }) => entries)}
          keyOf={({ transactionId, kind }) => `${transactionId} ${kind}`}
          empty={<Empty icon={<Wallet />} title={text.empty} hint={text.emptyHint} />}
        />
      ) : (
        <div className="p-5">
          <ErrorNote error={error} onRetry={() => void refetch()} />
        </div>
      )}
      <MoreRows
        hasMore={hasNextPage}
        isBusy={isFetchingNextPage}
        onMore={() => void fetchNextPage()}
      />
    </Card>
  );
}
