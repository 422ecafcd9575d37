/** Creating redeem codes, which are shown once. */
import { createClient } from "@connectrpc/connect";
import { useQueryClient } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useState } from "react";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { useText } from "../common/language.tsx";
import { moneyOf, parseUsd } from "../common/money.ts";
import { transport } from "../common/rpc.ts";
import { dayText, timestampOf } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { copyText, saveFile } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { AreaField, Segments, SelectField, TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";

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

/** The dialog. It stays until it is closed on purpose. */
export function NewCodesDialog({
  codes,
  onClose,
}: {
  codes: readonly string[];
  onClose: () => void;
}) {
  const {
    operator: { codes: text },
    common,
  } = useText();
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  const [isSaved, setSaved] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const lines = codes.join("\n");
  const copy = async (): Promise<void> => {
    const isDone = await copyText(lines);
    setOutcome(isDone ? "copied" : "failed");
    if (isDone) setSaved(true);
  };
  const save = (): void => {
    const name = `redeem-codes-${dayText(Date.now())}.txt`;
    saveFile(name, new Blob([`${lines}\n`], { type: "text/plain" }));
    setSaved(true);
  };
  const isWarned = isLeaving && !isSaved;
  return (
    <Dialog
      isOpen
      isSticky
      onClose={onClose}
      title={text.onceTitle(codes.length)}
      description={text.onceHint}
      footer={
        <>
          {isWarned && (
            <p role="alert" className="mr-auto self-center text-[0.8125rem] text-bad">
              {text.onceLeave}
            </p>
          )}
          <Button
            tone={isSaved ? "primary" : "secondary"}
            onClick={() => (isSaved || isLeaving ? onClose() : setLeaving(true))}
          >
            {isWarned ? text.onceLeaveConfirm : text.done}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <AreaField
          readOnly
          autoFocus
          label={text.onceList}
          value={lines}
          rows={Math.min(10, Math.max(2, codes.length))}
          spellCheck={false}
          onFocus={(event) => event.target.select()}
          onCopy={() => setSaved(true)}
          className="resize-none font-mono text-xs leading-relaxed"
        />
        <div className="flex flex-wrap gap-2">
          <Button tone="primary" onClick={() => void copy()}>
            {outcome === "copied" ? common.copied : common.copy}
          </Button>
          <Button onClick={save}>
            <Download aria-hidden="true" />
            {text.save}
          </Button>
        </div>
        <p
          role="status"
          className={outcome === "failed" ? "text-[0.8125rem] text-warn" : "sr-only"}
        >
          {outcome === "failed" ? common.notCopied : outcome === "copied" ? common.copied : ""}
        </p>
      </div>
    </Dialog>
  );
}
