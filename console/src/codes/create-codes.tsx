/** Creating redeem codes, which are shown once. */
import { createClient } from "@connectrpc/connect";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { useText } from "../common/language.tsx";
import { moneyOf, parseUsd } from "../common/money.ts";
import { transport } from "../common/rpc.ts";
import { timestampOf } from "../common/time.ts";
import { SegmentsField, SelectField, TextField } from "../ui/field.tsx";
import { FormDialog, useAction } from "../ui/form.tsx";
import { OnceDialog } from "../ui/once-dialog.tsx";

const client = createClient(RedeemService, transport);

/** Maximum number of codes of one request. */
const countMax = 1_000;

const dayMs = 86_400_000;

const expiries = ["never", "30", "90", "365"] as const;

interface Form {
  readonly amount: string;
  readonly count: string;
  readonly kind: "grant" | "payment";
  readonly note: string;
  readonly expiry: (typeof expiries)[number];
}

const firstForm: Form = { amount: "", count: "1", kind: "grant", note: "", expiry: "never" };

function amountOf({ amount }: Form): bigint | undefined {
  const nanos = parseUsd(amount) ?? 0n;
  return nanos > 0n ? nanos : undefined;
}

function countOf({ count }: Form): number | undefined {
  const number = /^\d+$/.test(count.trim()) ? Number(count) : 0;
  return number >= 1 && number <= countMax ? number : undefined;
}

/** Creates codes, which only `onCreated` gets. */
export function CreateCodesDialog({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (codes: readonly string[]) => void;
}) {
  const { codes: text } = useText();
  const queries = useQueryClient();
  const [form, setForm] = useState(firstForm);
  const [isTried, setTried] = useState(false);
  // No mutation: the codes must not stay in the cache of queries.
  const { run, isBusy, error } = useAction(async (amountNanos: bigint, count: number) => {
    const { kind, note, expiry } = form;
    const { codes } = await client.createRedeemCodes({
      amount: moneyOf(amountNanos),
      count,
      source: kind === "payment" ? TopUpSource.PAYMENT : TopUpSource.PROMO,
      note,
      ...(expiry !== "never" && { expireTime: timestampOf(Date.now() + Number(expiry) * dayMs) }),
    });
    onCreated(codes);
    await queries.invalidateQueries();
  });
  const submit = (): void => {
    setTried(true);
    const nanos = amountOf(form);
    const count = countOf(form);
    if (nanos !== undefined && count !== undefined) run(nanos, count);
  };
  return (
    <FormDialog
      onClose={onClose}
      title={text.createTitle}
      onSubmit={submit}
      submit={text.create}
      isBusy={isBusy}
      error={error}
    >
      <Fields form={form} onChange={setForm} isTried={isTried} />
    </FormDialog>
  );
}

interface FieldsProps {
  readonly form: Form;
  readonly onChange: (form: Form) => void;
  /** Whether it was submitted: errors are shown from then on. */
  readonly isTried: boolean;
}

function AmountFields({ form, onChange, isTried }: FieldsProps) {
  const { codes: text } = useText();
  return (
    <div className="grid grid-cols-2 gap-4">
      <TextField
        label={text.amount}
        error={isTried && amountOf(form) === undefined ? text.amountWrong : undefined}
        value={form.amount}
        inputMode="decimal"
        placeholder="10.00"
        required
        autoFocus
        onChange={(event) => onChange({ ...form, amount: event.target.value })}
      />
      <TextField
        label={text.count}
        error={isTried && countOf(form) === undefined ? text.countWrong : undefined}
        value={form.count}
        inputMode="numeric"
        required
        onChange={(event) => onChange({ ...form, count: event.target.value })}
      />
    </div>
  );
}

function Fields({ form, onChange, isTried }: FieldsProps) {
  const { codes: text } = useText();
  return (
    <>
      <AmountFields form={form} onChange={onChange} isTried={isTried} />
      <SegmentsField
        label={text.kind}
        value={form.kind}
        choices={[
          { value: "grant", label: text.grant },
          { value: "payment", label: text.payment },
        ]}
        onChoose={(kind) => onChange({ ...form, kind })}
        hint={text.kindHints[form.kind]}
      />
      <TextField
        label={text.note}
        hint={text.noteHint}
        value={form.note}
        maxLength={200}
        onChange={(event) => onChange({ ...form, note: event.target.value })}
      />
      <SelectField
        label={text.expires}
        value={form.expiry}
        choices={expiries.map((value) => ({
          value,
          label: value === "never" ? text.expiresNever : text.expiresDays(Number(value)),
        }))}
        onChoose={(expiry) => onChange({ ...form, expiry })}
      />
    </>
  );
}

/** Shows new codes, once. */
export function NewCodesDialog({
  codes,
  onClose,
}: {
  codes: readonly string[];
  onClose: () => void;
}) {
  const { codes: text } = useText();
  const lines = codes.join("\n");
  return (
    <OnceDialog
      title={text.onceTitle(codes.length)}
      description={text.onceHint}
      secret={lines}
      label={text.onceList}
      file={{
        label: text.save,
        name: "redeem-codes.txt",
        content: `${lines}\n`,
      }}
      warning={text.onceWarning}
      onClose={onClose}
    />
  );
}
