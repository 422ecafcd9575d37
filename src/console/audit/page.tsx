/** The audit log: what operators did. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ShieldCheck } from "lucide-react";
import { useState } from "react";
import type { AuditEntry } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { AccountFilter, useAccountNames } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { auditRooms, defined, oneOf } from "../common/search.ts";
import { localZone, msOf, timeText } from "../common/time.ts";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Segments } from "../ui/field.tsx";
import { ErrorNote, Time } from "../ui/show.tsx";
import { type Column, MoreRows, RowButton, Table } from "../ui/table.tsx";
import { changeText, EntrySheet, useActorName } from "./entry.tsx";

/** How many entries a page of the list has. */
const pageSize = 50;

/** The page. */
export function AuditPage() {
  const {
    operator: { audit: text },
    common,
  } = useText();
  const [open, setOpen] = useState<AuditEntry>();
  return (
    <>
      <PageHead title={text.title} hint={`${text.hint} ${common.zoneNote(localZone())}`} />
      <Card>
        <Filters />
        <Entries openId={open?.auditEntryId} onOpen={setOpen} />
      </Card>
      <EntrySheet entry={open} onClose={() => setOpen(undefined)} />
    </>
  );
}

function Filters() {
  const {
    operator: { audit: text },
  } = useText();
  const search = useSearch({ from: "/inside/operator/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const { room, account } = search;
  return (
    <div className="flex flex-wrap items-center gap-3 border-b border-line p-4">
      <Segments
        label={text.action}
        value={room ?? ""}
        choices={[
          { value: "", label: text.anyRoom },
          ...auditRooms.map((value) => ({ value, label: text.rooms[value] })),
        ]}
        onChoose={(value) => {
          const next = defined({ ...search, room: oneOf(value, auditRooms) });
          void navigate({ search: next, replace: true });
        }}
      />
      <AccountFilter
        accountId={account}
        onChoose={(accountId) => {
          const next = defined({ room, account: accountId });
          void navigate({ search: next, replace: true });
        }}
      />
    </div>
  );
}

function Entries({
  openId,
  onOpen,
}: {
  openId: string | undefined;
  onOpen: (entry: AuditEntry) => void;
}) {
  const texts = useText();
  const { audit: text } = texts.operator;
  const { room = "", account = "" } = useSearch({ from: "/inside/operator/audit" });
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    OperatorService.method.listAuditEntries,
    { pageSize, action: room, accountId: account, pageToken: "" },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      placeholderData: keepPreviousData,
    },
  );
  const accountNames = useAccountNames(true);
  const actorName = useActorName();
  if (error !== null) {
    return (
      <div className="p-5">
        <ErrorNote error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  const isFiltered = room !== "" || account !== "";
  return (
    <>
      <Table
        label={text.title}
        columns={auditColumns({ texts, accountNames, actorName, onOpen })}
        rows={data?.pages.flatMap(({ entries }) => entries)}
        keyOf={({ auditEntryId }) => auditEntryId}
        onOpen={onOpen}
        isOpen={({ auditEntryId }) => auditEntryId === openId}
        empty={
          <Empty
            icon={<ShieldCheck />}
            title={isFiltered ? text.noMatch : text.empty}
            hint={isFiltered ? text.noMatchHint : text.emptyHint}
          />
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

/** The columns. */
function auditColumns({
  texts: {
    operator: { audit: text },
    common,
  },
  accountNames,
  actorName,
  onOpen,
}: {
  texts: Texts;
  accountNames: ReadonlyMap<string, string>;
  actorName: (actor: string) => string;
  onOpen: (entry: AuditEntry) => void;
}): Column<AuditEntry>[] {
  return [
    {
      id: "time",
      title: common.time,
      cell: (entry) => (
        <RowButton onOpen={() => onOpen(entry)}>
          <span className="sr-only">
            {text.openEntry(entry.createTime ? timeText(msOf(entry.createTime)) : "")}
          </span>
          <span aria-hidden="true">
            <Time time={entry.createTime} />
          </span>
        </RowButton>
      ),
    },
    {
      id: "action",
      title: text.action,
      cell: ({ action }) => <span title={action}>{text.actionOf(action)}</span>,
    },
    {
      id: "account",
      title: text.about,
      from: "sm",
      cell: ({ accountId }) => (
        <span className="block max-w-44 truncate" title={accountId}>
          {accountId === "" ? (
            <span className="text-muted">—</span>
          ) : (
            (accountNames.get(accountId) ?? accountId.slice(-12))
          )}
        </span>
      ),
    },
    {
      id: "change",
      title: text.change,
      from: "md",
      cell: (entry) => (
        <span className="block max-w-72 truncate text-muted" title={entry.reason}>
          {entry.reason || changeText(entry) || "—"}
        </span>
      ),
    },
    {
      id: "actor",
      title: text.actor,
      from: "md",
      cell: ({ actor }) => (
        <span className="block max-w-40 truncate" title={actor}>
          {actorName(actor)}
        </span>
      ),
    },
  ];
}
