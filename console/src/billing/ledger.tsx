/** The ledger of an account: its filters, its entries as a list and as a CSV file. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { Wallet } from "lucide-react";
import { useMemo } from "react";
import {
  type LedgerEntry,
  LedgerKind,
  LedgerKindSchema,
} from "../../../gen/uas/billing/v1/billing_pb.ts";
import {
  BillingService,
  type ListLedgerEntriesRequestSchema,
} from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { csvOf } from "../common/csv.ts";
import { type Texts, useText } from "../common/language.tsx";
import { decimalUsd, nanosOf } from "../common/money.ts";
import { paged, transport } from "../common/rpc.ts";
import { defined, hasFilters, ledgerKinds, type LedgerSearch, ranges } from "../common/search.ts";
import { dayText, timestampOf } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { saveFile } from "../ui/copy.tsx";
import { FilterBar, FilterSelect, RangeFilter } from "../ui/filter-bar.tsx";
import { useAction } from "../ui/form.tsx";
import { Amount, Time } from "../ui/show.tsx";
import { type Column, QueryTable } from "../ui/table.tsx";
import { useErrorToast } from "../ui/toast.tsx";

/** Entries of one page of the list. */
const pageSize = 50;

/** The card with the entries that match the filters, newest first. */
export function Ledger({
  accountId,
  search,
  onSearch,
  isForOperator = false,
}: {
  accountId: string;
  search: LedgerSearch;
  onSearch: (search: LedgerSearch) => void;
  /** Whether the viewer is an operator: links to calls lead to the log of all accounts. */
  isForOperator?: boolean;
}) {
  const texts = useText();
  const { billing: text } = texts;
  const { range, kind } = search;
  // Computed once for the same filters, so that the range of all pages ends at the same moment.
  const filter = useMemo(() => ledgerFilterOf(defined({ range, kind })), [range, kind]);
  const query = useInfiniteQuery(
    BillingService.method.listLedgerEntries,
    { accountId, pageSize, ...filter, pageToken: "" },
    paged,
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
      <QueryTable
        query={query}
        label={text.ledger}
        columns={columns}
        rows={query.data?.pages.flatMap(({ entries }) => entries)}
        keyOf={(entry) => `${entry.transactionId} ${entry.kind}`}
        empty={<NoEntries isFiltered={hasFilters(search)} onClear={() => onSearch({})} />}
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

/** Entries fetched at once for a file. */
const csvPageSize = 1_000;

/** Maximum number of entries in one file. */
const entriesMax = 100_000;

/** The button that downloads the entries that match the filters. */
function LedgerCsv({ accountId, search }: { accountId: string; search: LedgerSearch }) {
  const { billing: text } = useText();
  const tellError = useErrorToast();
  const { run, isBusy } = useAction(async () => {
    const csv = csvOf(csvHead, (await allEntries(accountId, search)).map(cellsOf));
    saveFile(`ledger-${dayText(Date.now())}.csv`, new Blob([csv], { type: "text/csv" }));
  }, tellError);
  return (
    <Button isBusy={isBusy} onClick={run}>
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
    money === undefined ? "" : decimalUsd(nanosOf(money));
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

/** The bar with the filters of a ledger. */
function LedgerFilters({
  search,
  onSearch,
}: {
  search: LedgerSearch;
  onSearch: (search: LedgerSearch) => void;
}) {
  const { billing: text } = useText();
  const set = (change: { [Name in keyof LedgerSearch]: LedgerSearch[Name] | undefined }): void =>
    onSearch(defined({ ...search, ...change }));
  return (
    <FilterBar
      label={text.ledger}
      isBelowHead
      onClear={hasFilters(search) ? () => onSearch({}) : undefined}
    >
      <FilterSelect
        label={text.kind}
        any={text.anyKind}
        className="sm:w-48"
        value={search.kind}
        choices={ledgerKinds.map((value) => ({
          value,
          label: value === "moved" ? text.noCharges : (text.kinds[kindsOf[value][0] ?? 0] ?? ""),
        }))}
        onChoose={(kind) => set({ kind })}
      />
      <RangeFilter range={search.range} onChoose={(range) => set({ range })} />
    </FilterBar>
  );
}

/** The kinds of entries for each choice. */
const kindsOf: Readonly<Record<NonNullable<LedgerSearch["kind"]>, readonly LedgerKind[]>> = {
  moved: [
    LedgerKind.TOP_UP,
    LedgerKind.PROMO,
    LedgerKind.REFUND,
    LedgerKind.ADJUSTMENT,
    LedgerKind.LATE_SETTLEMENT,
  ],
  charge: [LedgerKind.CHARGE],
  top_up: [LedgerKind.TOP_UP],
  promo: [LedgerKind.PROMO],
  refund: [LedgerKind.REFUND],
  adjustment: [LedgerKind.ADJUSTMENT],
  late_settlement: [LedgerKind.LATE_SETTLEMENT],
};

/** The filter of a request for a page's search. A range counts back from now. */
function ledgerFilterOf({
  range,
  kind,
}: LedgerSearch): MessageInitShape<typeof ListLedgerEntriesRequestSchema> {
  return {
    ...(range && { fromTime: timestampOf(Date.now() - ranges[range]) }),
    ...(kind && { kinds: [...kindsOf[kind]] }),
  };
}
