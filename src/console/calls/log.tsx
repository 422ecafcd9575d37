/** The call log: filters in the address, a histogram, pages by keyset, live calls pushed by the gateway. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { clsx } from "clsx";
import { ScrollText } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { useAccountNames } from "../accounts/account.tsx";
import { ZoneProvider } from "../common/clock.tsx";
import { useText } from "../common/language.tsx";
import { paged } from "../common/rpc.ts";
import type { CallSearch } from "../common/search.ts";
import { localZone } from "../common/time.ts";
import { useKeyNames } from "../keys/keys.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { QueryTable, type RowsQuery } from "../ui/table.tsx";
import { CallSheet } from "./call-sheet.tsx";
import { callColumns } from "./columns.tsx";
import { ExportMenu } from "./export-menu.tsx";
import { filterOf } from "./filter.ts";
import { CallFilters } from "./filters.tsx";
import { Histogram } from "./histogram.tsx";
import { useTail } from "./use-tail.ts";

/** Calls of one page of the list. */
const pageSize = 50;

/** The log of one account, or for operators of all accounts. */
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
    <ZoneProvider zone={search.zone}>
      <PageHead
        title={title}
        hint={common.withZone(hint, search.zone ?? localZone())}
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
    </ZoneProvider>
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
  const filter = useFilter(search);
  const query = useInfiniteQuery(
    CallService.method.listCalls,
    { accountId, pageSize, filter, pageToken: "" },
    paged,
  );
  const isFiltered = Object.keys(search).some((name) => name !== "zone");
  return (
    <CallTable
      query={query}
      accountId={accountId}
      rows={query.data?.pages.flatMap(({ calls }) => calls)}
      openId={openId}
      onOpen={onOpen}
      empty={
        query.hasNextPage ? (
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
  );
}

function LiveCalls({ accountId, search, openId, onOpen }: ListProps) {
  const { calls: text } = useText();
  const filter = useFilter(search);
  const { calls, isLive, skipped } = useTail({ accountId, filter, isOn: true });
  return (
    <>
      <p role="status" className="border-b border-line px-5 py-2 text-xs text-muted">
        {isLive ? text.liveOn : text.liveWaiting} {skipped > 0 && text.skipped(skipped)}
      </p>
      <CallTable
        query={pushed}
        accountId={accountId}
        rows={calls}
        openId={openId}
        onOpen={onOpen}
        empty={<p className="px-6 py-16 text-center text-muted">{text.liveEmpty}</p>}
      />
    </>
  );
}

/** The query of pushed calls: nothing is fetched, so nothing fails. */
const pushed: RowsQuery = { error: null, refetch: () => undefined };

function CallTable({
  query,
  accountId,
  rows,
  openId,
  onOpen,
  empty,
}: {
  query: RowsQuery;
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
  useCallKeys(rows, { openId, onOpen });
  const columns = callColumns({ texts, keyNames, onOpen, ...(isForAll && { accountNames }) });
  return (
    <QueryTable
      query={query}
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

/** The filter of a request, computed once for the same search: the range of all pages ends at the same moment. */
function useFilter(search: CallSearch) {
  const written = JSON.stringify(search);
  return useMemo(() => filterOf(JSON.parse(written) as CallSearch), [written]);
}

/** Switches between the log and the live calls. */
function LiveSwitch({ isOn, onChange }: { isOn: boolean; onChange: (isOn: boolean) => void }) {
  const { calls } = useText();
  return (
    <button
      type="button"
      aria-pressed={isOn}
      onClick={() => onChange(!isOn)}
      className={clsx(buttonClass(), isOn && "border-good! text-good!")}
    >
      <span aria-hidden="true" className="relative flex size-2">
        {isOn && <span className="absolute inset-0 animate-ping rounded-full bg-good opacity-60" />}
        <span className={clsx("size-2 rounded-full", isOn ? "bg-good" : "bg-line-strong")} />
      </span>
      {calls.live}
    </button>
  );
}

/** J opens the next call of the list, K the one before. Not while something is typed. */
function useCallKeys(
  rows: readonly CallRecord[] | undefined,
  { openId, onOpen }: { openId: string | undefined; onOpen: (call: CallRecord) => void },
): void {
  useEffect(() => {
    if (openId === undefined || rows === undefined) return undefined;
    const openNext = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof Element && event.target.matches("input, textarea, select"))
        return;
      const step = { j: 1, k: -1 }[event.key];
      const at = rows.findIndex(({ callId }) => callId === openId);
      const next = step === undefined || at < 0 ? undefined : rows[at + step];
      if (next !== undefined) onOpen(next);
    };
    addEventListener("keydown", openNext);
    return () => removeEventListener("keydown", openNext);
  }, [rows, openId, onOpen]);
}
