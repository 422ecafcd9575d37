/** The ledger of an account: its entries as a list and as a CSV file. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Wallet } from "lucide-react";
import { useMemo, useState } from "react";
import {
  type LedgerEntry,
  LedgerKind,
  LedgerKindSchema,
} from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { csvOf } from "../common/csv.ts";
import { type Texts, useText } from "../common/language.tsx";
import { exactUsd, nanosOf } from "../common/money.ts";
import { shownError, transport } from "../common/rpc.ts";
import { defined, type LedgerSearch } from "../common/search.ts";
import { dayText } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { saveFile } from "../ui/copy.tsx";
import { Amount, ErrorNote, Time } from "../ui/show.tsx";
import { type Column, MoreRows, Table } from "../ui/table.tsx";
import { useToast } from "../ui/toast.tsx";
import { ledgerFilterOf, LedgerFilters } from "./ledger-filters.tsx";

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
          empty={
            <NoEntries isFiltered={Object.keys(search).length > 0} onClear={() => onSearch({})} />
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

function NoEntries({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
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

const client = createClient(BillingService, transport);

/** How many movements are asked for at once, and how many one file has at most. */
const csvPageSize = 1_000;
const entriesMax = 100_000;

/** The button that saves it. */
function LedgerCsv({ accountId, search }: { accountId: string; search: LedgerSearch }) {
  const { billing: text } = useText();
  const toast = useToast();
  const [isBusy, setBusy] = useState(false);
  const save = async (): Promise<void> => {
    setBusy(true);
    try {
      const csv = csvOf(csvHead, (await allEntries(accountId, search)).map(cellsOf));
      saveFile(`ledger-${dayText(Date.now())}.csv`, new Blob([csv], { type: "text/csv" }));
    } catch (error) {
      toast({ title: shownError(error).text });
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button isBusy={isBusy} onClick={() => void save()}>
      {text.download}
    </Button>
  );
}

async function allEntries(accountId: string, search: LedgerSearch): Promise<LedgerEntry[]> {
  const filter = ledgerFilterOf(search);
  const all: LedgerEntry[] = [];
  let pageToken = "";
  do {
    const page = await client.listLedgerEntries({
      accountId,
      pageSize: csvPageSize,
      ...filter,
      pageToken,
    });
    all.push(...page.entries);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && all.length < entriesMax);
  return all;
}

const csvHead = [
  "time",
  "transaction_id",
  "kind",
  "amount_usd",
  "balance_after_usd",
  "reference",
  "reason",
];

function cellsOf(entry: LedgerEntry): string[] {
  const amount = (money: LedgerEntry["amount"]): string =>
    money === undefined ? "" : exactUsd(nanosOf(money)).replace(" USD", "");
  return [
    entry.createTime ? timestampDate(entry.createTime).toISOString() : "",
    entry.transactionId,
    LedgerKindSchema.value[entry.kind]?.localName.toLowerCase() ?? "",
    amount(entry.amount),
    amount(entry.balanceAfter),
    entry.reference,
    entry.reason,
  ];
}
