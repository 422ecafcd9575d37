/** The call log of the account, and for operators of every account. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { clsx } from "clsx";
import { Download, ScrollText } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { type CallRecord, ExportFormat } from "../../../gen/uas/billing/v1/call_pb.ts";
import {
  CallService,
  type GetCallHistogramResponse,
} from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { AccountFilter, useAccountNames } from "../accounts/account.tsx";
import { useZone, ZoneProvider } from "../common/clock.tsx";
import { useText } from "../common/language.tsx";
import { paged, transport } from "../common/rpc.ts";
import { type AllCallSearch, type CallSearch, defined } from "../common/search.ts";
import { useAccountId } from "../common/session.tsx";
import { dayText, localZone, msOf, timeText } from "../common/time.ts";
import { useKeyNames } from "../keys/keys.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { saveFile } from "../ui/copy.tsx";
import { useAction } from "../ui/form.tsx";
import { ChoiceMenu } from "../ui/menu.tsx";
import { QueryTable, type RowsQuery } from "../ui/table.tsx";
import { useErrorToast, useToast } from "../ui/toast.tsx";
import { CallSheet } from "./call-sheet.tsx";
import { callColumns } from "./columns.tsx";
import { CallFilters, filterOf } from "./filters.tsx";
import { useTail } from "./use-tail.ts";

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

// The call log: filters in the address, a histogram, pages by keyset, live calls pushed by the gateway.

/** Calls of one page of the list. */
const pageSize = 50;

/** The log of one account, or for operators of all accounts. */
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

// Exports of the call log: what the filters show, as a file.

const client = createClient(CallService, transport);

/** Downloads the calls that match the filters, as CSV or JSON Lines. */
function ExportMenu({ accountId, search }: { accountId: string; search: CallSearch }) {
  const { calls: text } = useText();
  const toast = useToast();
  const { run, isBusy } = useAction(async (format: ExportFormat) => {
    const isWhole = await exportCalls({ accountId, search, format });
    toast(
      isWhole
        ? { title: text.exported }
        : { title: text.exportedPart, description: text.exportedPartNote },
    );
  }, useErrorToast());
  return (
    <ChoiceMenu
      label={text.export}
      tone="secondary"
      isBusy={isBusy}
      trigger={
        <>
          <Download aria-hidden="true" />
          {text.export}
        </>
      }
      groups={[]}
      footer={[
        { label: text.exportCsv, onSelect: () => run(ExportFormat.CSV) },
        { label: text.exportJson, onSelect: () => run(ExportFormat.JSON) },
      ]}
    />
  );
}

/** Saves the calls. @returns whether the file has all of them */
async function exportCalls({
  accountId,
  search,
  format,
}: {
  accountId: string;
  search: CallSearch;
  format: ExportFormat;
}): Promise<boolean> {
  const pieces: BlobPart[] = [];
  let isWhole = true;
  const request = { accountId, filter: filterOf(search), format };
  for await (const { data, nextPageToken } of client.exportCalls(request)) {
    pieces.push(new Uint8Array(data));
    if (nextPageToken !== "") isWhole = false;
  }
  const isCsv = format === ExportFormat.CSV;
  const type = isCsv ? "text/csv" : "application/x-ndjson";
  saveFile(`calls-${dayText(Date.now())}.${isCsv ? "csv" : "jsonl"}`, new Blob(pieces, { type }));
  return isWhole;
}

// The number of calls over time, above the list. Drawn without the charts library, which is large.

/** The most bars that are fetched. */
const barsMax = 60;

/** The height of the drawing, in its own units. */
const height = 40;

/** Succeeded and failed calls over the range. Default range: the last 24 hours. */
function Histogram({ accountId, search }: { accountId: string; search: CallSearch }) {
  const written = JSON.stringify(search);
  const filter = useMemo(
    () => filterOf({ range: "24h", ...(JSON.parse(written) as CallSearch) }),
    [written],
  );
  const { data } = useQuery(
    CallService.method.getCallHistogram,
    { accountId, filter, barLimit: barsMax },
    { placeholderData: keepPreviousData },
  );
  return <div className="h-20 border-b border-line px-5 py-3">{data && <Strip data={data} />}</div>;
}

function Strip({ data }: { data: GetCallHistogramResponse }) {
  const { calls: text } = useText();
  const zone = useZone();
  const { bars, barDuration, countedFromTime, toTime } = data;
  const lengthMs = barDuration ? durationMs(barDuration) : 1;
  const first = Math.floor((countedFromTime ? msOf(countedFromTime) : 0) / lengthMs);
  const last = Math.floor((toTime ? msOf(toTime) : 0) / lengthMs);
  const count = Math.max(1, last - first + 1);
  const most = bars.reduce(
    (most_, bar) => Math.max(most_, Number(bar.succeededCount + bar.failedCount)),
    1,
  );
  const good = bars.reduce((sum, { succeededCount }) => sum + succeededCount, 0n);
  const bad = bars.reduce((sum, { failedCount }) => sum + failedCount, 0n);
  const label = `${text.histogram}: ${text.histogramText(good.toLocaleString(), bad.toLocaleString())}`;
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${count * 10} ${height}`}
      preserveAspectRatio="none"
      className="h-full w-full"
    >
      <line x1="0" x2={count * 10} y1={height} y2={height} className="stroke-line" />
      {bars.map(({ time, succeededCount, failedCount }) => {
        if (time === undefined) return null;
        const x = (Math.floor(msOf(time) / lengthMs) - first) * 10 + 1;
        const goodHeight = (Number(succeededCount) / most) * height;
        const badHeight = (Number(failedCount) / most) * height;
        return (
          <g key={msOf(time)}>
            <title>
              {`${timeText(msOf(time), zone)}: ${text.histogramText(String(succeededCount), String(failedCount))}`}
            </title>
            <rect
              x={x}
              y={height - goodHeight}
              width="8"
              height={goodHeight}
              className="fill-(--chart-1)"
            />
            <rect
              x={x}
              y={height - goodHeight - badHeight}
              width="8"
              height={badHeight}
              className="fill-(--chart-8)"
            />
          </g>
        );
      })}
    </svg>
  );
}
