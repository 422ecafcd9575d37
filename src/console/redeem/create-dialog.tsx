/** The dialog that makes redeem codes. */
import { createClient } from "@connectrpc/connect";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { useText } from "../language.tsx";
import { moneyOf, parseUsd } from "../money.ts";
import { transport } from "../rpc.ts";
import { timestampOf } from "../time.ts";
import { TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { Segments, SelectField } from "../ui/select.tsx";

const client = createClient(RedeemService, transport);

/** The most codes that are made at once. */
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

/** The dialog. The codes go to whoever opened it and into no memory of queries. */
export function CreateCodesDialog({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (codes: readonly string[]) => void;
}) {
  const {
    operator: { codes: text },
  } = useText();
  const queries = useQueryClient();
  const [form, setForm] = useState(firstForm);
  const [isTried, setTried] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const create = async (amountNanos: bigint, count: number): Promise<void> => {
    setBusy(true);
    setError(undefined);
    const { kind, note, expiry } = form;
    try {
      const { codes } = await client.createRedeemCodes({
        amount: moneyOf(amountNanos),
        count,
        source: kind === "payment" ? TopUpSource.PAYMENT : TopUpSource.PROMO,
        note,
        ...(expiry !== "never" && { expireTime: timestampOf(Date.now() + Number(expiry) * dayMs) }),
      });
      onCreated(codes);
      await queries.invalidateQueries();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const submit = (): void => {
    setTried(true);
    const [nanos, count] = [amountOf(form), countOf(form)];
    if (nanos !== undefined && count !== undefined) void create(nanos, count);
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

function Fields({
  form,
  onChange,
  isTried,
}: {
  form: Form;
  onChange: (form: Form) => void;
  isTried: boolean;
}) {
  const {
    operator: { codes: text },
  } = useText();
  return (
    <>
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
      <div>
        <Segments
          label={text.kind}
          value={form.kind}
          choices={[
            { value: "grant", label: text.grant },
            { value: "payment", label: text.payment },
          ]}
          onChoose={(kind) => onChange({ ...form, kind })}
        />
        <p className="mt-1.5 text-xs text-muted">{text.kindHints[form.kind]}</p>
      </div>
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
