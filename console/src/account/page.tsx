/** One account, for operators: balance, settings, users and keys. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import {
  ArrowLeft,
  Ban,
  CircleCheck,
  KeyRound,
  ScrollText,
  ShieldCheck,
  Wallet,
} from "lucide-react";
import { useState } from "react";
import { type Account, AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { UsageBucket, UsageGroup } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { type Key, KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { AccountBadge } from "../accounts/account.tsx";
import { BalanceFigures, LowBalanceBadge } from "../billing/balance.tsx";
import { Ledger } from "../billing/ledger.tsx";
import { useText } from "../common/language.tsx";
import { decimalUsd, moneyOf, nanosOf, parseUsd } from "../common/money.ts";
import type { DeliverySearch } from "../common/search.ts";
import { keyColumns } from "../keys/columns.tsx";
import { useKeys } from "../keys/keys.tsx";
import { BudgetFields, type BudgetForm, budgetForm, budgetsOf } from "../ui/budget-fields.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, CardHead, Empty, MoneyFigure, PageHead, Skeleton } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { TextField } from "../ui/field.tsx";
import { Form, FormDialog, useDone } from "../ui/form.tsx";
import {
  areRates,
  isWait,
  RateFields,
  type RateForm,
  rateForm,
  ratesOf,
  WaitField,
  waitForm,
  waitOf,
} from "../ui/rate-fields.tsx";
import { ErrorNote, Time } from "../ui/show.tsx";
import { type Column, QueryTable } from "../ui/table.tsx";
import { useErrorToast } from "../ui/toast.tsx";
import { type UsageView, useUsage } from "../usage/use-usage.ts";
import { DeliveryCard } from "../webhooks/deliveries.tsx";
import { BalanceDialog } from "./balance-dialog.tsx";
import { UsersCard } from "./users-card.tsx";

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
          {state === AccountState.SUSPENDED ? (
            <Button isBusy={resume.isPending} onClick={() => resume.mutate({ accountId })}>
              <CircleCheck aria-hidden="true" />
              {text.resume}
            </Button>
          ) : (
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

// The API keys of an account, which operators can enable and disable.

/** The list of keys with a button that enables or disables each. */
function AccountKeys({ accountId }: { accountId: string }) {
  const texts = useText();
  const { accounts: text } = texts;
  const query = useKeys(accountId);
  const turn: Column<Key> = {
    id: "switch",
    title: texts.common.actionsColumn,
    isTight: true,
    cell: (key) => <SwitchButton apiKey={key} />,
  };
  return (
    <Card>
      <CardHead title={text.keys} hint={text.keysHint} />
      <QueryTable
        query={query}
        label={text.keys}
        columns={[...keyColumns({ texts }), turn]}
        rows={query.data?.keys}
        keyOf={({ keyId }) => keyId}
        empty={<Empty icon={<KeyRound />} title={text.noKeys} hint={text.noKeysHint} />}
      />
    </Card>
  );
}

function SwitchButton({ apiKey: { keyId, name, masked, state } }: { apiKey: Key }) {
  const { keys: text } = useText();
  const done = useDone();
  const shown = name || masked;
  const enable = useMutation(KeyService.method.enableKey, {
    onSuccess: () => done(text.didEnable(shown)),
  });
  const disable = useMutation(KeyService.method.disableKey, {
    onSuccess: () => done(text.didDisable(shown)),
  });
  if (state === KeyState.DELETED) return null;
  const isOn = state === KeyState.ENABLED;
  const act = isOn ? disable : enable;
  const label = isOn ? text.disable : text.enable;
  return (
    <Button
      aria-label={`${label}: ${shown}`}
      isBusy={act.isPending}
      onClick={() => act.mutate({ keyId })}
    >
      {label}
    </Button>
  );
}

// Settings of an account: name, discount, low-balance alert, budgets, rate limits, queue for room.

interface Values {
  readonly name: string;
  readonly discount: string;
  readonly threshold: string;
  readonly budgets: BudgetForm;
  readonly rates: RateForm;
  readonly wait: string;
}

function formOf(account: Account): Values {
  const { name, discountBp, lowBalanceThreshold, budgets, rateLimits, limitWait } = account;
  return {
    name,
    discount: discountBp === 0 ? "" : String(discountBp / 100),
    threshold: lowBalanceThreshold === undefined ? "" : decimalUsd(nanosOf(lowBalanceThreshold)),
    budgets: budgetForm(budgets),
    rates: rateForm(rateLimits),
    wait: waitForm(limitWait),
  };
}

const settings = [
  "name",
  "discount_bp",
  "low_balance_threshold",
  "budgets",
  "rate_limits",
  "limit_wait",
];

/** Changes name, discount, low-balance alert, budgets, rate limits and the queue for room. */
function AccountSettingsCard({ account }: { account: Account }) {
  const { accounts: text, common } = useText();
  const present = formOf(account);
  const [form, setForm] = useState(present);
  const done = useDone();
  const update = useMutation(AccountService.method.updateAccount, {
    onSuccess: ({ account: changed }) => {
      if (changed !== undefined) setForm(formOf(changed));
      return done(text.saved);
    },
  });
  const discountBp = parsePercent(form.discount);
  const nanos = form.threshold.trim() === "" ? undefined : parseUsd(form.threshold);
  const submit = (): void => {
    const budgets = budgetsOf(form.budgets);
    if (discountBp === undefined || !isThreshold(form.threshold) || !budgets) return;
    if (!areRates(form.rates) || !isWait(form.wait)) return;
    const rateLimits = ratesOf(form.rates);
    const limitWait = waitOf(form.wait);
    update.mutate({
      account: {
        accountId: account.accountId,
        name: form.name,
        discountBp,
        budgets,
        ...(rateLimits && { rateLimits }),
        ...(limitWait && { limitWait }),
        ...(nanos !== undefined && { lowBalanceThreshold: moneyOf(nanos) }),
      },
      updateMask: { paths: settings },
    });
  };
  return (
    <Card>
      <CardHead title={text.settings} />
      <Form onSubmit={submit} className="flex flex-col gap-4 px-5 pb-5">
        <Fields values={form} onChange={setForm} />
        <ErrorNote error={update.error} />
        <Button
          type="submit"
          className="self-start"
          isBusy={update.isPending}
          disabled={JSON.stringify(form) === JSON.stringify(present)}
        >
          {common.save}
        </Button>
      </Form>
    </Card>
  );
}

function Fields({ values, onChange }: { values: Values; onChange: (values: Values) => void }) {
  const { accounts: text } = useText();
  return (
    <>
      <TextField
        label={text.name}
        value={values.name}
        maxLength={200}
        required
        onChange={(event) => onChange({ ...values, name: event.target.value })}
      />
      <TextField
        label={text.discountLabel}
        hint={text.discountHint}
        error={parsePercent(values.discount) === undefined ? text.discountWrong : undefined}
        value={values.discount}
        inputMode="decimal"
        placeholder="0"
        onChange={(event) => onChange({ ...values, discount: event.target.value })}
      />
      <TextField
        label={text.threshold}
        hint={text.thresholdHint}
        error={isThreshold(values.threshold) ? undefined : text.amountWrong}
        value={values.threshold}
        inputMode="decimal"
        placeholder="5.00"
        onChange={(event) => onChange({ ...values, threshold: event.target.value })}
      />
      <BudgetFields
        form={values.budgets}
        onChange={(budgets) => onChange({ ...values, budgets })}
      />
      <RateFields form={values.rates} onChange={(rates) => onChange({ ...values, rates })} />
      <WaitField value={values.wait} onChange={(wait) => onChange({ ...values, wait })} />
    </>
  );
}

function isThreshold(typed: string): boolean {
  return typed.trim() === "" || (parseUsd(typed) ?? 0n) > 0n;
}

/** Parses a percentage that somebody typed. @returns hundredths of a percent; `undefined` where it is none */
function parsePercent(text: string): number | undefined {
  const found = /^(\d{1,3})(?:\.(\d{1,2}))?\s*%?$/.exec(text.trim());
  if (found === null) return text.trim() === "" ? 0 : undefined;
  const [, whole = "0", fraction = ""] = found;
  const bp = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  return bp <= 10_000 ? bp : undefined;
}
