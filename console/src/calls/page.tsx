/** The call log of the account, and for operators of every account. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { clsx } from "clsx";
import { ScrollText } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { AccountFilter, useAccountNames } from "../accounts/account.tsx";
import { ZoneProvider } from "../common/clock.tsx";
import { useText } from "../common/language.tsx";
import { paged } from "../common/rpc.ts";
import { type AllCallSearch, type CallSearch, defined } from "../common/search.ts";
import { useAccountId } from "../common/session.tsx";
import { localZone } from "../common/time.ts";
import { useKeyNames } from "../keys/keys.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { QueryTable, type RowsQuery } from "../ui/table.tsx";
import { CallSheet } from "./call-sheet.tsx";
import { callColumns } from "./columns.tsx";
import { CallFilters, filterOf } from "./filters.tsx";
import { useTail } from "./use-tail.ts";
import { ExportMenu } from "./export-menu.tsx";
import { Histogram } from "./histogram.tsx";

/** `/calls`. */
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

/** `/all-calls`, for operators. */
export function AllCallsPage() {
  const { allCalls: text } = useText();
  const { account, ...search } = useSearch({ from: "/inside/operator/all-calls" });
  const navigate = useNavigate({ from: "/all-calls" });
  const set = (next: AllCallSearch): void => void navigate({ search: next, replace: true });
  const choose = (accountId: string | undefined): void =>
    // A key belongs to one account.
    set(defined({ ...search, key: undefined, account: accountId }));
  return (
    <CallLog
      title={text.title}
      hint={account === undefined ? text.hint : text.hintOne}
      accountId={account ?? ""}
      search={search}
      onSearch={(next) => set({ ...next, ...defined({ account }) })}
      accountFilter={<AccountFilter accountId={account} onChoose={choose} />}
    />
  );
}

/** Calls of one page of the list. */
const pageSize = 50;

/**
 * The log of one account, or for operators of all accounts: filters in the address, a histogram,
 * pages by keyset, and live calls that the gateway pushes.
 */
function CallLog({
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
  /** For operators: selects the account. Absent if there is only one. */
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

/**
 * The filter of a request, computed once for the same search: the range of all pages ends at the
 * same moment.
 */
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

/** J opens the next call of the list, K the one before, except while the user types. */
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
