/** The audit log: what operators did. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ShieldCheck } from "lucide-react";
import { useState } from "react";
import type { AuditEntry } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { accountColumn, AccountFilter, useAccountNames } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { paged } from "../common/rpc.ts";
import { auditKinds, type AuditSearch, defined } from "../common/search.ts";
import { localZone, msOf, timeText } from "../common/time.ts";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { FilterBar, FilterSegments } from "../ui/filter-bar.tsx";
import { Truncated } from "../ui/show.tsx";
import { type Column, QueryTable, RowTime } from "../ui/table.tsx";
import { changeText, EntrySheet, useActorName } from "./entry.tsx";

/** Entries of one page of the list. */
const pageSize = 50;

/** `/audit`, for operators. */
export function AuditPage() {
  const { audit: text, common } = useText();
  const [open, setOpen] = useState<AuditEntry>();
  return (
    <>
      <PageHead title={text.title} hint={common.withZone(text.hint, localZone())} />
      <Card>
        <Filters />
        <Entries openId={open?.auditEntryId} onOpen={setOpen} />
      </Card>
      <EntrySheet entry={open} onClose={() => setOpen(undefined)} />
    </>
  );
}

function Filters() {
  const { audit: text } = useText();
  const { kind, account } = useSearch({ from: "/inside/operator/audit" });
  const navigate = useNavigate({ from: "/audit" });
  const set = (search: AuditSearch): void => void navigate({ search, replace: true });
  return (
    <FilterBar label={text.title}>
      <FilterSegments
        label={text.action}
        any={text.anyKind}
        value={kind}
        choices={auditKinds.map((value) => ({ value, label: text.kinds[value] }))}
        onChoose={(chosen) => set(defined({ account, kind: chosen }))}
      />
      <AccountFilter
        accountId={account}
        onChoose={(accountId) => set(defined({ kind, account: accountId }))}
      />
    </FilterBar>
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
  const { audit: text } = texts;
  const { kind = "", account = "" } = useSearch({ from: "/inside/operator/audit" });
  const query = useInfiniteQuery(
    OperatorService.method.listAuditEntries,
    { pageSize, action: kind, accountId: account, pageToken: "" },
    paged,
  );
  const accountNames = useAccountNames(true);
  const actorName = useActorName();
  const isFiltered = kind !== "" || account !== "";
  return (
    <QueryTable
      query={query}
      label={text.title}
      columns={auditColumns({ texts, accountNames, actorName, onOpen })}
      rows={query.data?.pages.flatMap(({ entries }) => entries)}
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
  );
}

function auditColumns({
  texts: { audit: text, common },
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
        <RowTime
          time={entry.createTime}
          label={text.openEntry(entry.createTime ? timeText(msOf(entry.createTime)) : "")}
          onOpen={() => onOpen(entry)}
        />
      ),
    },
    {
      id: "action",
      title: text.action,
      cell: ({ action }) => <span title={action}>{text.actionOf(action)}</span>,
    },
    accountColumn({ title: text.account, from: "sm", names: accountNames }),
    {
      id: "change",
      title: text.change,
      from: "md",
      cell: (entry) => (
        <Truncated
          text={entry.reason || changeText(entry)}
          title={entry.reason}
          className="max-w-72 text-muted"
        />
      ),
    },
    {
      id: "actor",
      title: text.actor,
      from: "md",
      cell: ({ actor }) => <Truncated text={actorName(actor)} title={actor} className="max-w-40" />,
    },
  ];
}
