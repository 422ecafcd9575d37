/** Redeem codes, for operators: created, listed, revoked. */
import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Plus, Ticket } from "lucide-react";
import { useState } from "react";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { type RedeemCode, RedeemCodeState } from "../../../gen/uas/billing/v1/redeem_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { accountColumn, useAccountNames } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { paged } from "../common/rpc.ts";
import { codeStates, defined } from "../common/search.ts";
import { Button } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { FilterBar, FilterSegments } from "../ui/filter-bar.tsx";
import { useDone } from "../ui/form.tsx";
import { Amount, Badge, type Tone, Truncated } from "../ui/show.tsx";
import { agoColumn, type Column, QueryTable } from "../ui/table.tsx";
import { CreateCodesDialog, NewCodesDialog } from "./create-codes.tsx";

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
