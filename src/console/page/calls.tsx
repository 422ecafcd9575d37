/** The call log: filters in the address, a histogram, pages by the keyset, live by the gateway's own push. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { keepPreviousData } from "@tanstack/react-query";
import { ScrollText } from "lucide-react";
import { useMemo, useState } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { useAccountNames } from "../account/use-account-names.ts";
import { CallSheet } from "../call/call-sheet.tsx";
import { callColumns } from "../call/columns.tsx";
import { ExportMenu } from "../call/export-menu.tsx";
import { filterOf } from "../call/filter.ts";
import { CallFilters } from "../call/filters.tsx";
import { Histogram } from "../call/histogram.tsx";
import { useTail } from "../call/use-tail.ts";
import { useWalk } from "../call/use-walk.ts";
import { useText } from "../language.tsx";
import type { CallSearch } from "../search.ts";
import { useAccountId } from "../session.tsx";
import { localZone } from "../time.ts";
import { Button } from "../ui/button.tsx";
import { InZone } from "../in-zone.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { LiveSwitch } from "../ui/live-switch.tsx";
import { MoreRows, Table } from "../ui/table.tsx";
import { useKeyNames } from "../key/use-keys.ts";

/** How many calls a page of the list has. */
const pageSize = 50;

/** The page. */
export function CallsPage() {
  const { calls: text } = useText();
  const search = useSearch({ from: "/inside/calls" });
  const navigate = useNavigate({ from: "/calls" });
  const accountId = useAccountId();
  const set = (next: CallSearch): void => void navigate({ search: next, replace: true });
  return (
    <CallLog
      title={text.title}
      hint={text.hint}
      accountId={accountId}
      search={search}
      onSearch={set}
    />
  );
}

/** The log of an account, or of all: for the operator. */
export function CallLog({
  title,
  hint,
  accountId,
  search,
  onSearch,
  accountFilter,
}: {
  title: string;
  hint: string;
  /** Empty: all accounts. */
  accountId: string;
  search: CallSearch;
  onSearch: (search: CallSearch) => void;
  /** For operators: chooses the account. Default: there is one only. */
  accountFilter?: React.ReactNode;
}) {
  const { common } = useText();
  const [isLive, setLive] = useState(false);
  const open = (call: CallRecord): void => onSearch({ ...search, call: call.callId });
  const { call: openId, ...filters } = search;
  return (
    <InZone zone={search.zone}>
      <PageHead
        title={title}
        hint={`${hint} ${common.zoneNote(search.zone ?? localZone())}`}
        actions={
          <>
            <LiveSwitch isOn={isLive} onChange={setLive} />
            <ExportMenu accountId={accountId} search={filters} />
          </>
        }
      />
      <Card>
        <CallFilters accountId={accountId} search={filters} onSearch={onSearch}>
          {accountFilter}
        </CallFilters>
        <Histogram accountId={accountId} search={filters} />
        {isLive ? (
          <LiveCalls accountId={accountId} search={filters} openId={openId} onOpen={open} />
        ) : (
          <LoggedCalls
            accountId={accountId}
            search={filters}
            openId={openId}
            onOpen={open}
            onClear={() => onSearch({})}
          />
        )}
      </Card>
      <CallSheet accountId={accountId} callId={openId} onClose={() => onSearch(filters)} />
    </InZone>
  );
}

interface ListProps {
  readonly accountId: string;
  readonly search: CallSearch;
  readonly openId: string | undefined;
  readonly onOpen: (call: CallRecord) => void;
}

function LoggedCalls({
  accountId,
  search,
  openId,
  onOpen,
  onClear,
}: ListProps & { onClear: () => void }) {
  const { calls: text, common } = useText();
  const { filter } = useFilter(search);
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    CallService.method.listCalls,
    { accountId, pageSize, filter, pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      placeholderData: keepPreviousData,
    },
  );
  if (error !== null) {
    return (
      <div className="p-5">
        <ErrorNote error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  const isFiltered = Object.keys(search).some((name) => name !== "zone");
  return (
    <>
      <CallTable
        accountId={accountId}
        rows={data?.pages.flatMap(({ calls }) => calls)}
        openId={openId}
        onOpen={onOpen}
        empty={
          hasNextPage ? (
            <p className="px-6 py-10 text-center text-muted">{text.searching}</p>
          ) : isFiltered ? (
            <Empty
              title={text.noMatch}
              hint={text.noMatchHint}
              action={<Button onClick={onClear}>{common.clearFilters}</Button>}
            />
          ) : (
            <Empty icon={<ScrollText />} title={text.empty} hint={text.emptyHint} />
          )
        }
      />
      <MoreRows
        hasMore={hasNextPage}
        isBusy={isFetchingNextPage}
        onMore={() => void fetchNextPage()}
      />
    </>
  );
}

function LiveCalls({ accountId, search, openId, onOpen }: ListProps) {
  const { calls: text } = useText();
  const { filter } = useFilter(search);
  const { calls, isLive, skipped } = useTail({ accountId, filter, isOn: true });
  return (
    <>
      <p role="status" className="border-b border-line px-5 py-2 text-xs text-muted">
        {isLive ? text.liveOn : text.liveWaiting} {skipped > 0 && text.skipped(skipped)}
      </p>
      <CallTable
        accountId={accountId}
        rows={calls}
        openId={openId}
        onOpen={onOpen}
        empty={<p className="px-6 py-16 text-center text-muted">{text.liveEmpty}</p>}
      />
    </>
  );
}

function CallTable({
  accountId,
  rows,
  openId,
  onOpen,
  empty,
}: {
  accountId: string;
  rows: readonly CallRecord[] | undefined;
  openId: string | undefined;
  onOpen: (call: CallRecord) => void;
  empty: React.ReactNode;
}) {
  const texts = useText();
  const keyNames = useKeyNames(accountId);
  const isForAll = accountId === "";
  const accountNames = useAccountNames(isForAll);
  useWalk(rows, { openId, onOpen });
  const columns = callColumns({ texts, keyNames, onOpen, ...(isForAll && { accountNames }) });
  return (
    <Table
      label={texts.calls.title}
      columns={columns}
      rows={rows}
      keyOf={({ callId }) => callId}
      onOpen={onOpen}
      isOpen={({ callId }) => callId === openId}
      empty={empty}
    />
  );
}

/** The filter of a request. Its moment stays the same while the filters do, so that pages fit together. */
function useFilter(search: CallSearch) {
  const written = JSON.stringify(search);
  return useMemo(() => ({ filter: filterOf(JSON.parse(written) as CallSearch) }), [written]);
}
