/**
 * The dialog that changes the balance of an account: a top-up, a credit or an adjustment. Its
 * reference stays the same while it is open, so that a repeated request is recorded once.
 */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { type Balance, TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { useText } from "../common/language.tsx";
import { moneyOf, nanosOf, parseUsd, signedUsd, usd } from "../common/money.ts";
import { dayText } from "../common/time.ts";
import { SegmentsField, TextField } from "../ui/field.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";

type Kind = "payment" | "grant" | "correction";

interface Form {
  readonly kind: Kind;
  readonly amount: string;
  readonly reference: string;
  readonly reason: string;
}

/** Tops up, credits or adjusts the balance of an account. */
export function BalanceDialog({ account, onClose }: { account: Account; onClose: () => void }) {
  const { accounts: text } = useText();
  const [form, setForm] = useState<Form>(firstForm);
  const [isTried, setTried] = useState(false);
  const { adjustBy, isPending, error } = useAdjustment(account.accountId, onClose);
  const submit = (): void => {
    setTried(true);
    const nanos = amountOf(form);
    if (nanos !== undefined) adjustBy(form, nanos);
  };
  return (
    <FormDialog
      onClose={onClose}
      title={text.adjustTitle(account.name)}
      onSubmit={submit}
      submit={text.confirm}
      isBusy={isPending}
      error={error}
    >
      <Fields form={form} onChange={setForm} isTried={isTried} />
    </FormDialog>
  );
}

function Fields({
  form,
  onChange,
  isTried,
}: {
  form: Form;
  onChange: (form: Form) => void;
  isTried: boolean;
}) {
  const { accounts: text } = useText();
  const { kind, amount, reference, reason } = form;
  const isCorrection = kind === "correction";
  const wrong = isCorrection ? text.correctionWrong : text.amountWrong;
  return (
    <>
      <SegmentsField
        label={text.adjustKind}
        value={kind}
        choices={[
          { value: "payment", label: text.payment },
          { value: "grant", label: text.grant },
          { value: "correction", label: text.correction },
        ]}
        onChoose={(chosen) => onChange({ ...form, kind: chosen })}
        hint={text.kindHints[kind]}
      />
      <TextField
        label={text.amount}
        hint={isCorrection ? text.correctionHint : undefined}
        error={isTried && amountOf(form) === undefined ? wrong : undefined}
        value={amount}
        inputMode="decimal"
        placeholder="25.00"
        required
        autoFocus
        onChange={(event) => onChange({ ...form, amount: event.target.value })}
      />
      {isCorrection && (
        <TextField
          label={text.reason}
          hint={text.reasonHint}
          value={reason}
          maxLength={500}
          required
          onChange={(event) => onChange({ ...form, reason: event.target.value })}
        />
      )}
      <ReferenceField
        value={reference}
        onChange={(typed) => onChange({ ...form, reference: typed })}
      />
    </>
  );
}

function firstForm(): Form {
  return { kind: "payment", amount: "", reference: newReference(), reason: "" };
}

/** The amount in nano-USD; undefined if it cannot be recorded. */
function amountOf({ kind, amount }: Form): bigint | undefined {
  const nanos = parseUsd(amount) ?? 0n;
  return kind === "correction" ? nanos || undefined : nanos > 0n ? nanos : undefined;
}

function useAdjustment(accountId: string, onClose: () => void) {
  const { accounts: text } = useText();
  const topUp = useMutation(BillingService.method.topUp);
  const adjust = useMutation(BillingService.method.adjustBalance);
  const done = useDone(onClose);
  const onSuccess = (
    nanos: bigint,
    { balance, replayed }: { balance?: Balance | undefined; replayed: boolean },
  ): Promise<void> =>
    done(
      replayed ? text.replayed : text.recorded(signedUsd(nanos)),
      text.availableNow(usd(nanosOf(balance?.available))),
    );
  return {
    isPending: topUp.isPending || adjust.isPending,
    error: topUp.error ?? adjust.error,
    adjustBy: ({ kind, reference, reason }: Form, nanos: bigint): void => {
      const request = { accountId, amount: moneyOf(nanos), reference };
      const then = {
        onSuccess: (reply: Parameters<typeof onSuccess>[1]) => void onSuccess(nanos, reply),
      };
      topUp.reset();
      adjust.reset();
      if (kind === "correction") return adjust.mutate({ ...request, reason }, then);
      const source = kind === "grant" ? TopUpSource.PROMO : TopUpSource.PAYMENT;
      topUp.mutate({ ...request, source }, then);
    },
  };
}

/** A unique reference: `console-2026-11-21-1a2b3c4`. */
export function newReference(): string {
  // Browsers have `randomUUID` over HTTPS only.
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  return `console-${dayText(Date.now())}-${random.toString(36)}`;
}

/** The field for the reference of a change of a balance: each is recorded once. */
export function ReferenceField({
  value,
  onChange,
}: {
  value: string;
  onChange: (value: string) => void;
}) {
  const { accounts: text } = useText();
  return (
    <TextField
      label={text.reference}
      hint={text.referenceHint}
      value={value}
      maxLength={200}
      required
      className="font-mono text-xs"
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
