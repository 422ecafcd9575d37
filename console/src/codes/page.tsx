/** Redeem codes, for operators: created, listed, revoked. */
import { createClient } from "@connectrpc/connect";
import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Plus, Ticket } from "lucide-react";
import { useState } from "react";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { type RedeemCode, RedeemCodeState } from "../../../gen/uas/billing/v1/redeem_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { accountColumn, useAccountNames } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { moneyOf, parseUsd } from "../common/money.ts";
import { paged, transport } from "../common/rpc.ts";
import { codeStates, defined } from "../common/search.ts";
import { timestampOf } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { SegmentsField, SelectField, TextField } from "../ui/field.tsx";
import { FilterBar, FilterSegments } from "../ui/filter-bar.tsx";
import { FormDialog, useAction, useDone } from "../ui/form.tsx";
import { OnceDialog } from "../ui/once-dialog.tsx";
import { Amount, Badge, type Tone, Truncated } from "../ui/show.tsx";
import { agoColumn, type Column, QueryTable } from "../ui/table.tsx";

/** Codes of one page of the list. */
const pageSize = 50;

type Open =
  | { readonly kind: "create" }
  | { readonly kind: "once"; readonly codes: readonly string[] }
  | { readonly kind: "revoke"; readonly code: RedeemCode };

/** `/codes`, for operators. */
export function CodesPage() {
  const { codes: text } = useText();
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  return (
    <>
      <PageHead
        title={text.title}
        hint={text.hint}
        actions={
          <Button tone="primary" onClick={() => setOpen({ kind: "create" })}>
            <Plus aria-hidden="true" />
            {text.create}
          </Button>
        }
      />
      <CodeList onRevoke={(code) => setOpen({ kind: "revoke", code })} />
      {open?.kind === "create" && (
        <CreateCodesDialog
          onClose={close}
          onCreated={(codes) => setOpen({ kind: "once", codes })}
        />
      )}
      {open?.kind === "once" && <NewCodesDialog codes={open.codes} onClose={close} />}
      {open?.kind === "revoke" && <RevokeDialog code={open.code} onClose={close} />}
    </>
  );
}

const states = {
  open: RedeemCodeState.OPEN,
  redeemed: RedeemCodeState.REDEEMED,
  revoked: RedeemCodeState.REVOKED,
  expired: RedeemCodeState.EXPIRED,
} as const;

function CodeList({ onRevoke }: { onRevoke: (code: RedeemCode) => void }) {
  const texts = useText();
  const { codes: text } = texts;
  const { state } = useSearch({ from: "/inside/operator/codes" });
  const navigate = useNavigate({ from: "/codes" });
  const query = useInfiniteQuery(
    RedeemService.method.listRedeemCodes,
    { pageSize, ...(state && { state: states[state] }), pageToken: "" },
    paged,
  );
  const accountNames = useAccountNames(true);
  return (
    <Card>
      <FilterBar label={text.title}>
        <FilterSegments
          label={texts.common.status}
          any={text.any}
          value={state}
          choices={codeStates.map((value) => ({
            value,
            label: text.states[states[value]] ?? value,
          }))}
          onChoose={(chosen) =>
            void navigate({ search: defined({ state: chosen }), replace: true })
          }
        />
      </FilterBar>
      <QueryTable
        query={query}
        label={text.title}
        columns={codeColumns({ texts, accountNames, onRevoke })}
        rows={query.data?.pages.flatMap(({ redeemCodes }) => redeemCodes)}
        keyOf={({ redeemCodeId }) => redeemCodeId}
        empty={
          state === undefined ? (
            <Empty icon={<Ticket />} title={text.empty} hint={text.emptyHint} />
          ) : (
            <Empty icon={<Ticket />} title={text.noMatch} />
          )
        }
      />
    </Card>
  );
}

const tones: Readonly<Record<RedeemCodeState, Tone>> = {
  [RedeemCodeState.UNSPECIFIED]: "neutral",
  [RedeemCodeState.OPEN]: "info",
  [RedeemCodeState.REDEEMED]: "good",
  [RedeemCodeState.REVOKED]: "bad",
  [RedeemCodeState.EXPIRED]: "neutral",
};

function codeColumns({
  texts: { codes: text, common },
  accountNames,
  onRevoke,
}: {
  texts: Texts;
  accountNames: ReadonlyMap<string, string>;
  onRevoke: (code: RedeemCode) => void;
}): Column<RedeemCode>[] {
  return [
    {
      id: "code",
      title: text.code,
      cell: ({ hint }) => <span className="font-mono text-xs whitespace-nowrap">…{hint}</span>,
    },
    {
      id: "state",
      title: common.status,
      cell: ({ state }) => <Badge tone={tones[state] ?? "neutral"}>{text.states[state]}</Badge>,
    },
    {
      id: "worth",
      title: text.worth,
      isNumber: true,
      cell: ({ amount }) => <Amount money={amount} />,
    },
    {
      id: "kind",
      title: text.bookedAs,
      from: "lg",
      cell: ({ source }) => (source === TopUpSource.PAYMENT ? text.payment : text.grant),
    },
    {
      id: "note",
      title: text.note,
      from: "md",
      cell: ({ note }) => <Truncated text={note} className="max-w-56" />,
    },
    agoColumn({
      id: "created",
      title: text.created,
      from: "md",
      time: ({ createTime }) => createTime,
    }),
    agoColumn({
      id: "expires",
      title: text.expireTime,
      from: "lg",
      none: text.expiresNever,
      time: ({ expireTime }) => expireTime,
    }),
    accountColumn({ title: text.account, from: "sm", names: accountNames }),
    {
      id: "revoke",
      title: common.actionsColumn,
      isTight: true,
      cell: (code) => <RevokeButton code={code} onRevoke={onRevoke} />,
    },
  ];
}

function RevokeButton({
  code,
  onRevoke,
}: {
  code: RedeemCode;
  onRevoke: (code: RedeemCode) => void;
}) {
  const { codes: text } = useText();
  if (code.state !== RedeemCodeState.OPEN) return null;
  return (
    <Button aria-label={`${text.revoke}: …${code.hint}`} onClick={() => onRevoke(code)}>
      {text.revoke}
    </Button>
  );
}

function RevokeDialog({ code, onClose }: { code: RedeemCode; onClose: () => void }) {
  const { codes: text } = useText();
  const done = useDone(onClose);
  const revoke = useMutation(RedeemService.method.revokeRedeemCode, {
    onSuccess: () => done(text.didRevoke),
  });
  return (
    <Confirm
      isOpen
      onClose={onClose}
      onConfirm={() => revoke.mutate({ redeemCodeId: code.redeemCodeId })}
      title={text.revokeTitle(code.hint)}
      confirm={text.revokeConfirm}
      isBusy={revoke.isPending}
      error={revoke.error}
    >
      <p>{text.revokeText}</p>
    </Confirm>
  );
}

// Creating redeem codes, which are shown once.

const client = createClient(RedeemService, transport);

/** The most codes of one request. */
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
function CreateCodesDialog({
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
    const [nanos, count] = [amountOf(form), countOf(form)];
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
function NewCodesDialog({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
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
