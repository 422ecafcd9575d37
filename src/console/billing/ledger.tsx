/** The movements of an account. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Wallet } from "lucide-react";
import { useMemo } from "react";
import { type LedgerEntry, LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { type Texts, useText } from "../language.tsx";
import { nanosOf } from "../money.ts";
import { defined, type LedgerSearch } from "../search.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { Amount, ErrorNote, Time } from "../ui/show.tsx";
import { type Column, MoreRows, Table } from "../ui/table.tsx";
import { ledgerFilterOf } from "./filter.ts";
import { LedgerCsv } from "./ledger-csv.tsx";
import { LedgerFilters } from "./ledger-filters.tsx";

/** How many movements a page of the ledger has. */
const pageSize = 50;

/** The card with the movements that fit the filters, newest first. */
export function Ledger({
  accountId,
  search,
  onSearch,
  isForOperator = false,
}: {
  accountId: string;
  search: LedgerSearch;
  onSearch: (search: LedgerSearch) => void;
  /** Whether an operator looks at it: its calls are opened in the log of all accounts. */
  isForOperator?: boolean;
}) {
  const texts = useText();
  const { billing: text } = texts;
  const { range, kind } = search;
  // Its moment stays the same while the filters do, so that pages fit together.
  const filter = useMemo(() => ledgerFilterOf(defined({ range, kind })), [range, kind]);
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    BillingService.method.listLedgerEntries,
    { accountId, pageSize, ...filter, pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      placeholderData: keepPreviousData,
    },
  );
  const columns = columnsOf(texts, isForOperator ? accountId : undefined);
  return (
    <Card>
      <CardHead
        title={text.ledger}
        hint={text.ledgerHint}
        actions={<LedgerCsv accountId={accountId} search={search} />}
      />
      <LedgerFilters search={search} onSearch={onSearch} />
      {error === null ? (
        <Table
          label={text.ledger}
          columns={columns}
          rows={data?.pages.flatMap(({ entries }) => entries)}
          keyOf={(entry) => `${entry.transactionId} ${entry.kind}`}
          empty={<None isFiltered={Object.keys(search).length > 0} onClear={() => onSearch({})} />}
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

function None({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  const { billing: text, common } = useText();
  if (!isFiltered) return <Empty icon={<Wallet />} title={text.empty} hint={text.emptyHint} />;
  const clear = <Button onClick={onClear}>{common.clearFilters}</Button>;
  return <Empty title={text.noMatch} hint={text.noMatchHint} action={clear} />;
}

function columnsOf(
  { billing: text, common }: Texts,
  ofAccount: string | undefined,
): Column<LedgerEntry>[] {
  return [
    { id: "time", title: common.time, cell: ({ createTime }) => <Time time={createTime} /> },
    { id: "kind", title: text.kind, cell: ({ kind }) => text.kinds[kind] },
    {
      id: "amount",
      title: text.amount,
      isNumber: true,
      cell: ({ amount }) => (
        <span className={nanosOf(amount) > 0n ? "text-good" : ""}>
          <Amount isSigned money={amount} />
        </span>
      ),
    },
    {
      id: "after",
      title: text.after,
      isNumber: true,
      from: "sm",
      cell: ({ balanceAfter }) => <Amount isExact money={balanceAfter} />,
    },
    {
      id: "note",
      title: text.note,
      from: "md",
      cell: ({ kind, transactionId, reason, reference }) =>
        kind === LedgerKind.CHARGE ? (
          <Link
            {...(ofAccount === undefined
              ? { to: "/calls", search: { call: transactionId } }
              : { to: "/all-calls", search: { account: ofAccount, call: transactionId } })}
            className="text-accent underline underline-offset-4"
          >
            {text.call}
          </Link>
        ) : (
          <span className="block max-w-80 truncate text-muted" title={reason || reference}>
            {reason || reference}
          </span>
        ),
    },
  ];
}
