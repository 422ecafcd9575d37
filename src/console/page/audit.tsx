/** What operators did. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ShieldCheck } from "lucide-react";
import { useState } from "react";
import type { AuditEntry } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { AccountFilter } from "../account/account-filter.tsx";
import { useAccountNames } from "../account/use-account-names.ts";
import { auditColumns } from "../audit/columns.tsx";
import { EntrySheet } from "../audit/entry-sheet.tsx";
import { useActorName } from "../audit/use-actor-name.ts";
import { useText } from "../language.tsx";
import { auditRooms } from "../operator/search.ts";
import { defined, oneOf } from "../search.ts";
import { localZone } from "../time.ts";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Segments } from "../ui/select.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { MoreRows, Table } from "../ui/table.tsx";

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
