/** Billing: balance, top-up, low-balance alert, budgets and the ledger. */
import { useMutation } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
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
  const { billing: text, common } = useText();
  const { account } = useSession();
  const done = useDone();
  const present = account.lowBalanceThreshold;
  const written = present === undefined ? "" : decimalUsd(nanosOf(present));
  const [amount, setAmount] = useState(written);
  const update = useMutation(AccountService.method.updateAccount, {
    onSuccess: () => done(text.alertSaved),
  });
  const nanos = amount.trim() === "" ? undefined : parseUsd(amount);
  const isWrong = amount.trim() !== "" && (nanos ?? 0n) <= 0n;
  const submit = (): void => {
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
      <Form onSubmit={submit} className="flex flex-wrap items-start gap-3 px-5 pb-5">
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
      </Form>
    </Card>
  );
}

function BudgetCard() {
  const { budgets: text, common } = useText();
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
          {common.save}
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
