/** Redeem codes, for operators: made, listed, revoked. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Plus, Ticket } from "lucide-react";
import { useState } from "react";
import { type RedeemCode, RedeemCodeState } from "../../../gen/uas/billing/v1/redeem_pb.ts";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { useAccountNames } from "../account/use-account-names.ts";
import { useText } from "../language.tsx";
import { codeStates } from "../operator/search.ts";
import { codeColumns } from "../redeem/columns.tsx";
import { CreateCodesDialog } from "../redeem/create-dialog.tsx";
import { OnceCodesDialog } from "../redeem/once-dialog.tsx";
import { RevokeDialog } from "../redeem/revoke-dialog.tsx";
import { oneOf } from "../search.ts";
import { Button } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Segments } from "../ui/select.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { MoreRows, Table } from "../ui/table.tsx";

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
      {open?.kind === "once" && <OnceCodesDialog codes={open.codes} onClose={close} />}
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
