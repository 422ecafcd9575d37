/** Redeem codes, for operators: created, listed, revoked. */
import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Plus, Ticket } from "lucide-react";
import { useState } from "react";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { type RedeemCode, RedeemCodeState } from "../../../gen/uas/billing/v1/redeem_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { useAccountNames } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { codeStates, oneOf } from "../common/search.ts";
import { Button } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Segments } from "../ui/field.tsx";
import { Amount, Badge, ErrorNote, Time, type Tone } from "../ui/show.tsx";
import { type Column, MoreRows, Table } from "../ui/table.tsx";
import { useDone } from "../ui/toast.tsx";
import { CreateCodesDialog, NewCodesDialog } from "./create-dialog.tsx";

/** How many codes a page of the list has. */
const pageSize = 50;

type Open =
  | { readonly kind: "create" }
  | { readonly kind: "once"; readonly codes: readonly string[] }
  | { readonly kind: "revoke"; readonly code: RedeemCode };

/** The page. */
export function CodesPage() {
  const {
    operator: { codes: text },
  } = useText();
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
  const { codes: text } = texts.operator;
  const { state } = useSearch({ from: "/inside/operator/codes" });
  const navigate = useNavigate({ from: "/codes" });
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    RedeemService.method.listRedeemCodes,
    { pageSize, ...(state && { state: states[state] }), pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      placeholderData: keepPreviousData,
    },
  );
  const accountNames = useAccountNames(true);
  const choose = (value: string): void => {
    const chosen = oneOf(value, codeStates);
    void navigate({ search: chosen ? { state: chosen } : {}, replace: true });
  };
  return (
    <Card>
      <div className="border-b border-line p-4">
        <Segments
          label={texts.common.status}
          value={state ?? ""}
          choices={[
            { value: "", label: text.any },
            ...codeStates.map((value) => ({ value, label: text.states[states[value]] ?? value })),
          ]}
          onChoose={choose}
        />
      </div>
      {error === null ? (
        <Table
          label={text.title}
          columns={codeColumns({ texts, accountNames, onRevoke })}
          rows={data?.pages.flatMap(({ redeemCodes }) => redeemCodes)}
          keyOf={({ redeemCodeId }) => redeemCodeId}
          empty={
            state === undefined ? (
              <Empty icon={<Ticket />} title={text.empty} hint={text.emptyHint} />
            ) : (
              <Empty icon={<Ticket />} title={text.noMatch} />
            )
          }
        />
      ) : (
        <div className="p-5">
          <ErrorNote error={error} onRetry={() => void refetch()} />
        </div>
      )}
      <MoreRows
        hasMore={hasNextPage}
        isBusy={isFetchingNextPage}
        onMore={() => void fetchNextPage()}
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

/** The columns. */
function codeColumns({
  texts: {
    operator: { codes: text },
    common,
  },
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
      cell: ({ note }) => (
        <span className="block max-w-56 truncate" title={note}>
          {note || <span className="text-muted">—</span>}
        </span>
      ),
    },
    {
      id: "created",
      title: text.created,
      from: "md",
      cell: ({ createTime }) => <Time isRelative time={createTime} />,
    },
    {
      id: "expires",
      title: text.expireTime,
      from: "lg",
      cell: ({ expireTime }) => <Time isRelative time={expireTime} none={text.expiresNever} />,
    },
    {
      id: "account",
      title: text.account,
      from: "sm",
      cell: ({ accountId }) =>
        accountId === "" ? (
          <span className="text-muted">—</span>
        ) : (
          <Link
            to="/accounts/$accountId"
            params={{ accountId }}
            className="block max-w-40 truncate underline-offset-4 hover:underline"
          >
            {accountNames.get(accountId) ?? accountId.slice(-12)}
          </Link>
        ),
    },
    {
      id: "revoke",
      title: <span className="sr-only">{text.revoke}</span>,
      isTight: true,
      cell: (code) =>
        code.state === RedeemCodeState.OPEN && (
          <Button aria-label={`${text.revoke}: …${code.hint}`} onClick={() => onRevoke(code)}>
            {text.revoke}
          </Button>
        ),
    },
  ];
}

/** The dialog. */
function RevokeDialog({ code, onClose }: { code: RedeemCode; onClose: () => void }) {
  const {
    operator: { codes: text },
  } = useText();
  const done = useDone();
  const revoke = useMutation(RedeemService.method.revokeRedeemCode, {
    onSuccess: async () => {
      onClose();
      await done(text.didRevoke);
    },
  });
  return (
    <Confirm
      isOpen
      onClose={onClose}
      onConfirm={() => revoke.mutate({ redeemCodeId: code.redeemCodeId })}
      title={text.revokeTitle(code.hint)}
      confirm={text.revokeConfirm}
      isBusy={revoke.isPending}
    >
      <p>{text.revokeText}</p>
      <ErrorNote error={revoke.error} />
    </Confirm>
  );
}
