/** Billing: balance, top-up, low-balance alert, budgets and the ledger. */
import { useMutation } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { useText } from "../common/language.tsx";
import { decimalUsd, moneyOf, nanosOf, parseUsd, usd } from "../common/money.ts";
import { useAccountId, useSession } from "../common/session.tsx";
import { localZone } from "../common/time.ts";
import { BudgetFields, BudgetLines, budgetForm, budgetsOf } from "../ui/budget-fields.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, PageHead } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { TextField } from "../ui/field.tsx";
import { Form, useDone } from "../ui/form.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { BalanceFigures, useBalance } from "./balance.tsx";
import { Ledger } from "./ledger.tsx";

/** `/billing`. */
export function BillingPage() {
  const { billing: text, common } = useText();
  const accountId = useAccountId();
  const search = useSearch({ from: "/inside/billing" });
  const navigate = useNavigate({ from: "/billing" });
  return (
    <>
      <PageHead title={text.title} hint={common.withZone(text.hint, localZone())} />
      <div className="flex flex-col gap-6">
        <Figures />
        <div className="grid grid-cols-1 gap-6 lg:grid-cols-2">
          <TopUpCard />
          <AlertCard />
          <BudgetCard />
        </div>
        <Ledger
          accountId={accountId}
          search={search}
          onSearch={(next) => void navigate({ search: next, replace: true, resetScroll: false })}
        />
      </div>
    </>
  );
}

function Figures() {
  const { data } = useBalance();
  return (
    <div className="grid grid-cols-1 gap-4 sm:grid-cols-3">
      <BalanceFigures balance={data} />
    </div>
  );
}

function TopUpCard() {
  const { billing: text } = useText();
  const { account } = useSession();
  return (
    <Card>
      <CardHead title={text.topUp} hint={text.topUpHint} />
      <div className="flex flex-col gap-4 px-5 pb-5">
        <RedeemForm />
        <p className="text-[0.8125rem] text-muted">
          {text.topUpId} <Id value={account.accountId} />
        </p>
      </div>
    </Card>
  );
}

function AlertCard() {
  const { billing: text } = useText();
  const { account } = useSession();
  const done = useDone();
  const present = alertForm(account);
  const [form, setForm] = useState(present);
  const update = useMutation(AccountService.method.updateAccount, {
    onSuccess: () => done(text.alertSaved),
  });
  const nanos = form.amount.trim() === "" ? undefined : parseUsd(form.amount);
  const isWrong = form.amount.trim() !== "" && (nanos ?? 0n) <= 0n;
  const submit = (): void => {
    if (isWrong) return;
    const { accountId } = account;
    const members = {
      alertUrl: form.url.trim(),
      alertEmails: form.emails.split(/[\s,;]+/).filter((email) => email !== ""),
      ...(nanos !== undefined && { lowBalanceThreshold: moneyOf(nanos) }),
    };
    const paths = ["low_balance_threshold", "alert_url", "alert_emails"];
    update.mutate({ account: { accountId, ...members }, updateMask: { paths } });
  };
  return (
    <Card>
      <CardHead title={text.alert} hint={text.alertHint} />
      <Form onSubmit={submit} className="flex flex-col gap-4 px-5 pb-5">
        <AlertFields form={form} isWrong={isWrong} onChange={setForm} />
        <ErrorNote error={update.error} />
        <Button
          type="submit"
          size="medium"
          className="self-start"
          isBusy={update.isPending}
          disabled={JSON.stringify(form) === JSON.stringify(present)}
        >
          {text.alertSave}
        </Button>
      </Form>
    </Card>
  );
}

type AlertForm = ReturnType<typeof alertForm>;

function AlertFields({
  form,
  isWrong,
  onChange,
}: {
  form: AlertForm;
  isWrong: boolean;
  onChange: (form: AlertForm) => void;
}) {
  const { billing: text } = useText();
  return (
    <>
      <TextField
        label={text.alertAmount}
        hint={text.alertOff}
        error={isWrong ? text.amountWrong : undefined}
        value={form.amount}
        inputMode="decimal"
        placeholder="5.00"
        onChange={({ target }) => onChange({ ...form, amount: target.value })}
      />
      <TextField
        label={text.alertUrl}
        hint={text.alertUrlHint}
        value={form.url}
        inputMode="url"
        placeholder="https://example.com/alerts"
        onChange={({ target }) => onChange({ ...form, url: target.value })}
      />
      <TextField
        label={text.alertEmails}
        hint={text.alertEmailsHint}
        value={form.emails}
        onChange={({ target }) => onChange({ ...form, emails: target.value })}
      />
    </>
  );
}

function alertForm({ lowBalanceThreshold, alertUrl, alertEmails }: Account) {
  const amount = lowBalanceThreshold === undefined ? "" : decimalUsd(nanosOf(lowBalanceThreshold));
  return { amount, url: alertUrl, emails: alertEmails.join(", ") };
}

function BudgetCard() {
  const { budgets: text } = useText();
  const { account } = useSession();
  const done = useDone();
  const present = budgetForm(account.budgets);
  const [form, setForm] = useState(present);
  const update = useMutation(AccountService.method.updateAccount, {
    onSuccess: () => done(text.saved),
  });
  const submit = (): void => {
    const budgets = budgetsOf(form);
    if (budgets === undefined) return;
    const { accountId } = account;
    update.mutate({ account: { accountId, budgets }, updateMask: { paths: ["budgets"] } });
  };
  return (
    <Card className="lg:col-span-2">
      <CardHead title={text.cardTitle} hint={text.cardHint} />
      <Form onSubmit={submit} className="flex flex-col gap-4 px-5 pb-5">
        <BudgetFields form={form} onChange={setForm} />
        <BudgetLines budgets={account.budgets} />
        <ErrorNote error={update.error} />
        <Button
          type="submit"
          size="medium"
          className="self-start"
          isBusy={update.isPending}
          disabled={JSON.stringify(form) === JSON.stringify(present)}
        >
          {text.save}
        </Button>
      </Form>
    </Card>
  );
}

/** Redeems a code. A code counts once; sending it twice changes nothing. */
function RedeemForm() {
  const { billing: text } = useText();
  const accountId = useAccountId();
  const [code, setCode] = useState("");
  const done = useDone(() => setCode(""));
  const redeem = useMutation(RedeemService.method.redeem, {
    onSuccess: ({ amount, replayed }) => {
      const value = usd(nanosOf(amount));
      return done(replayed ? text.redeemedBefore(value) : text.redeemed(value));
    },
  });
  return (
    <Form onSubmit={() => redeem.mutate({ accountId, code })} className="flex flex-col gap-3">
      <div className="flex flex-wrap items-end gap-3">
        <div className="min-w-40 flex-1">
          <TextField
            label={text.redeemCode}
            required
            spellCheck={false}
            autoCapitalize="characters"
            value={code}
            onChange={(event) => setCode(event.target.value)}
            className="font-mono"
          />
        </div>
        <Button type="submit" size="medium" isBusy={redeem.isPending} disabled={code.trim() === ""}>
          {text.redeem}
        </Button>
      </div>
      <ErrorNote error={redeem.error} />
    </Form>
  );
}
