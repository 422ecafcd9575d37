/** One account, for operators: balance, settings, users and keys. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { ArrowLeft, Ban, CircleCheck, ScrollText, ShieldCheck, Wallet } from "lucide-react";
import { useState } from "react";
import { type Account, AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { UsageBucket, UsageGroup } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { AccountBadge } from "../accounts/account.tsx";
import { BalanceFigures, LowBalanceBadge } from "../billing/balance.tsx";
import { Ledger } from "../billing/ledger.tsx";
import { useText } from "../common/language.tsx";
import { nanosOf } from "../common/money.ts";
import type { DeliverySearch } from "../common/search.ts";
import { Button, buttonClass } from "../ui/button.tsx";
import { MoneyFigure, PageHead, Skeleton } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { TextField } from "../ui/field.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { ErrorNote, Time } from "../ui/show.tsx";
import { useErrorToast } from "../ui/toast.tsx";
import { type UsageView, useUsage } from "../usage/use-usage.ts";
import { DeliveryCard } from "../webhooks/deliveries.tsx";
import { BalanceDialog } from "./balance-dialog.tsx";
import { UsersCard } from "./users-card.tsx";
import { AccountKeys } from "./keys-card.tsx";
import { AccountSettingsCard } from "./settings-card.tsx";

/** `/accounts/$accountId`, for operators. */
export function AccountPage() {
  const { accounts: text } = useText();
  const { accountId } = useParams({ from: "/inside/operator/accounts/$accountId" });
  const { data, error, refetch } = useQuery(AccountService.method.getAccount, { accountId });
  return (
    <>
      <Link
        to="/accounts"
        className="mb-3 inline-flex items-center gap-1.5 rounded text-[0.8125rem] text-muted hover:text-ink"
      >
        <ArrowLeft aria-hidden="true" className="size-4" />
        {text.back}
      </Link>
      {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data?.account === undefined ? (
        error === null && <Waiting />
      ) : (
        // Another account starts with fresh forms.
        <Details key={accountId} account={data.account} />
      )}
    </>
  );
}

function Waiting() {
  return (
    <div className="flex flex-col gap-6">
      <Skeleton className="h-14 w-64" />
      <Skeleton className="h-28" />
      <Skeleton className="h-72" />
    </div>
  );
}

function Details({ account }: { account: Account }) {
  const [open, setOpen] = useState<"adjust" | "suspend">();
  const [deliveries, setDeliveries] = useState<DeliverySearch>({});
  const close = (): void => setOpen(undefined);
  const { accountId } = account;
  const search = useSearch({ from: "/inside/operator/accounts/$accountId" });
  const navigate = useNavigate({ from: "/accounts/$accountId" });
  return (
    <>
      <Head account={account} onOpen={setOpen} />
      <div className="flex flex-col gap-6">
        {account.state === AccountState.SUSPENDED && <Suspended account={account} />}
        <AccountFigures accountId={accountId} />
        <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[minmax(0,1fr)_20rem]">
          <UsersCard account={account} />
          <AccountSettingsCard account={account} />
        </div>
        <AccountKeys accountId={accountId} />
        <Ledger
          accountId={accountId}
          search={search}
          onSearch={(next) => void navigate({ search: next, replace: true, resetScroll: false })}
          isForOperator
        />
        <DeliveryCard accountId={accountId} search={deliveries} onSearch={setDeliveries} />
      </div>
      {open === "adjust" && <BalanceDialog account={account} onClose={close} />}
      {open === "suspend" && <SuspendDialog account={account} onClose={close} />}
    </>
  );
}

function Head({
  account,
  onOpen,
}: {
  account: Account;
  onOpen: (open: "adjust" | "suspend") => void;
}) {
  const { accounts: text, layout } = useText();
  const resume = useResume();
  const { accountId, name, state } = account;
  const { data } = useQuery(BillingService.method.getBalance, { accountId });
  return (
    <PageHead
      title={name}
      hint={
        <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <AccountBadge account={account} />
          <LowBalanceBadge account={account} balance={data?.balance} />
          <Id isWhole value={accountId} />
          <span>
            {text.created} <Time isRelative time={account.createTime} />
          </span>
        </span>
      }
      actions={
        <>
          <Link to="/all-calls" search={{ account: accountId }} className={buttonClass()}>
            <ScrollText aria-hidden="true" />
            {text.calls}
          </Link>
          <Link to="/audit" search={{ account: accountId }} className={buttonClass()}>
            <ShieldCheck aria-hidden="true" />
            {layout.audit}
          </Link>
          {(state === AccountState.SUSPENDED || state === AccountState.CLOSED) && (
            <Button isBusy={resume.isPending} onClick={() => resume.mutate({ accountId })}>
              <CircleCheck aria-hidden="true" />
              {text.resume}
            </Button>
          )}
          {state === AccountState.ACTIVE && (
            <Button onClick={() => onOpen("suspend")}>
              <Ban aria-hidden="true" />
              {text.suspend}
            </Button>
          )}
          <Button tone="primary" onClick={() => onOpen("adjust")}>
            <Wallet aria-hidden="true" />
            {text.adjust}
          </Button>
        </>
      }
    />
  );
}

function Suspended({ account: { suspendReason, suspendTime } }: { account: Account }) {
  const { accounts: text } = useText();
  return (
    <div className="flex flex-wrap items-start gap-3 rounded-xl bg-bad-soft px-4 py-3 text-bad">
      <Ban aria-hidden="true" className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-0 flex-1">
        <p className="font-medium">
          {text.suspendedSince} <Time isRelative time={suspendTime} />
        </p>
        <p className="mt-0.5 break-words">{suspendReason}</p>
      </div>
    </div>
  );
}

const lastMonth: UsageView = { range: "30d", bucket: UsageBucket.DAY, group: UsageGroup.NONE };

function AccountFigures({ accountId }: { accountId: string }) {
  const { accounts: text, overview } = useText();
  const { data } = useQuery(BillingService.method.getBalance, { accountId });
  const usage = useUsage(lastMonth, accountId);
  const totals = usage.data?.totals;
  return (
    <div className="grid grid-cols-1 gap-4 sm:grid-cols-2 xl:grid-cols-4">
      <BalanceFigures balance={data?.balance} />
      <MoneyFigure
        label={text.month}
        nanos={usage.data && nanosOf(totals?.cost)}
        note={usage.data && overview.callCount(totals?.callCount ?? 0n)}
      />
    </div>
  );
}

/** Suspends an account, for a reason. */
function SuspendDialog({ account, onClose }: { account: Account; onClose: () => void }) {
  const { accounts: text } = useText();
  const { accountId, name } = account;
  const [reason, setReason] = useState("");
  const done = useDone(onClose);
  const suspend = useMutation(AccountService.method.suspendAccount, {
    onSuccess: () => done(text.didSuspend(name)),
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.suspendTitle(name)}
      description={text.suspendText}
      onSubmit={() => suspend.mutate({ accountId, reason })}
      submit={text.suspendConfirm}
      tone="danger"
      isBusy={suspend.isPending}
      error={suspend.error}
    >
      <TextField
        label={text.reason}
        hint={text.suspendHint}
        value={reason}
        maxLength={500}
        required
        autoFocus
        onChange={(event) => setReason(event.target.value)}
      />
    </FormDialog>
  );
}

/** Resumes an account, and shows a toast. */
function useResume() {
  const { accounts: text } = useText();
  const done = useDone();
  return useMutation(AccountService.method.resumeAccount, {
    onSuccess: ({ account }) => done(text.didResume(account?.name ?? "")),
    onError: useErrorToast(),
  });
}
