/** Settings of an account: name, discount, low-balance alert. */
import { useMutation } from "@connectrpc/connect-query";
import { type FormEvent, useState } from "react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { useText } from "../common/language.tsx";
import { exactUsd, moneyOf, nanosOf, parseUsd } from "../common/money.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { useDone } from "../ui/toast.tsx";

interface Form {
  readonly name: string;
  readonly discount: string;
  readonly threshold: string;
}

function formOf({ name, discountBp, lowBalanceThreshold }: Account): Form {
  return {
    name,
    discount: discountBp === 0 ? "" : String(discountBp / 100),
    threshold:
      lowBalanceThreshold === undefined
        ? ""
        : exactUsd(nanosOf(lowBalanceThreshold)).replace(" USD", ""),
  };
}

/** The card. */
export function AccountSettingsCard({ account }: { account: Account }) {
  const {
    operator: { accounts: text },
    common,
  } = useText();
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
  const isThreshold = form.threshold.trim() === "" || (nanos ?? 0n) > 0n;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (discountBp === undefined || !isThreshold) return;
    update.mutate({
      account: {
        accountId: account.accountId,
        name: form.name,
        discountBp,
        ...(nanos !== undefined && { lowBalanceThreshold: moneyOf(nanos) }),
      },
      updateMask: { paths: ["name", "discount_bp", "low_balance_threshold"] },
    });
  };
  return (
    <Card>
      <CardHead title={text.terms} hint={text.termsHint} />
      <form onSubmit={submit} className="flex flex-col gap-4 px-5 pb-5">
        <TextField
          label={text.name}
          value={form.name}
          maxLength={200}
          required
          onChange={(event) => setForm({ ...form, name: event.target.value })}
        />
        <TextField
          label={text.discountLabel}
          hint={text.discountHint}
          error={discountBp === undefined ? text.discountWrong : undefined}
          value={form.discount}
          inputMode="decimal"
          placeholder="0"
          onChange={(event) => setForm({ ...form, discount: event.target.value })}
        />
        <TextField
          label={text.threshold}
          hint={text.thresholdHint}
          error={isThreshold ? undefined : text.amountWrong}
          value={form.threshold}
          inputMode="decimal"
          placeholder="5.00"
          onChange={(event) => setForm({ ...form, threshold: event.target.value })}
        />
        <ErrorNote error={update.error} />
        <Button
          type="submit"
          className="self-start"
          isBusy={update.isPending}
          disabled={JSON.stringify(form) === JSON.stringify(present)}
        >
          {common.save}
        </Button>
      </form>
    </Card>
  );
}

/** Reads what a person typed as a percentage. @returns hundredths of a percent; `undefined` where it is none */
function parsePercent(text: string): number | undefined {
  const found = /^(\d{1,3})(?:\.(\d{1,2}))?\s*%?$/.exec(text.trim());
  if (found === null) return text.trim() === "" ? 0 : undefined;
  const [, whole = "0", fraction = ""] = found;
  const bp = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  return bp <= 10_000 ? bp : undefined;
}
