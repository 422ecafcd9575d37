/**
 * Settings of an account: name, discount, low-balance alert, budgets, rate limits, queue for room.
 */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { useText } from "../common/language.tsx";
import { decimalUsd, moneyOf, nanosOf, parseUsd } from "../common/money.ts";
import { BudgetFields, type BudgetForm, budgetForm, budgetsOf } from "../ui/budget-fields.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { TextField } from "../ui/field.tsx";
import { Form, useDone } from "../ui/form.tsx";
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
import { ErrorNote } from "../ui/show.tsx";

interface Values {
  readonly name: string;
  readonly discount: string;
  readonly priceList: string;
  readonly threshold: string;
  readonly budgets: BudgetForm;
  readonly rates: RateForm;
  readonly wait: string;
}

function formOf(account: Account): Values {
  const { name, discountBp, priceList, lowBalanceThreshold, budgets } = account;
  const { rateLimits, limitWait } = account;
  return {
    name,
    discount: discountBp === 0 ? "" : String(discountBp / 100),
    priceList,
    threshold: lowBalanceThreshold === undefined ? "" : decimalUsd(nanosOf(lowBalanceThreshold)),
    budgets: budgetForm(budgets),
    rates: rateForm(rateLimits),
    wait: waitForm(limitWait),
  };
}

const settings = [
  "name",
  "discount_bp",
  "price_list",
  "low_balance_threshold",
  "budgets",
  "rate_limits",
  "limit_wait",
];

/**
 * Changes name, discount, price list, low-balance alert, budgets, rate limits and the queue for
 * room.
 */
export function AccountSettingsCard({ account }: { account: Account }) {
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
        priceList: form.priceList.trim(),
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
        label={text.priceList}
        hint={text.priceListHint}
        value={values.priceList}
        maxLength={64}
        onChange={(event) => onChange({ ...values, priceList: event.target.value })}
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

/**
 * Parses a typed percentage.
 *
 * @returns hundredths of a percent; undefined if the text is no percentage
 */
function parsePercent(text: string): number | undefined {
  const found = /^(\d{1,3})(?:\.(\d{1,2}))?\s*%?$/.exec(text.trim());
  if (found === null) return text.trim() === "" ? 0 : undefined;
  const [, whole = "0", fraction = ""] = found;
  const bp = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  return bp <= 10_000 ? bp : undefined;
}
