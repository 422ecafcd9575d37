/** The audit log: actions of operators. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ShieldCheck } from "lucide-react";
import { useState } from "react";
import type { AuditEntry } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import {
  accountColumn,
  AccountFilter,
  AccountIdLink,
  useAccountNames,
  useActorName,
} from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { paged } from "../common/rpc.ts";
import { auditKinds, type AuditSearch, defined } from "../common/search.ts";
import { localZone, msOf, timeText } from "../common/time.ts";
import { Card, Empty, Facts, PageHead } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { FilterBar, FilterSegments } from "../ui/filter-bar.tsx";
import { Time, Truncated } from "../ui/show.tsx";
import { type Column, QueryTable, RowTime } from "../ui/table.tsx";

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

/** The details of an entry; open while there is one. */
function EntrySheet({ entry, onClose }: { entry: AuditEntry | undefined; onClose: () => void }) {
  const { audit: text } = useText();
  return (
    <Sheet
      isOpen={entry !== undefined}
      onClose={onClose}
      title={entry && text.actionOf(entry.action)}
    >
      {entry !== undefined && (
        <div className="flex flex-col gap-7">
          <About entry={entry} />
          <Changes entry={entry} />
        </div>
      )}
    </Sheet>
  );
}

function About({ entry }: { entry: AuditEntry }) {
  const { audit: text, common } = useText();
  const actorName = useActorName();
  const { createTime, actor, action, accountId, subject, reason, requestId } = entry;
  return (
    <Facts
      rows={[
        [common.time, <Time key="time" time={createTime} />],
        [
          text.action,
          <span key="action" className="font-mono text-xs">
            {action}
          </span>,
        ],
        [text.actor, actorName(actor)],
        ...(reason === "" ? [] : [[text.reason, reason] as const]),
        ...(accountId === ""
          ? []
          : [[text.account, <AccountIdLink key="account" accountId={accountId} />] as const]),
        ...(subject === "" || subject === accountId
          ? []
          : [[text.subject, <Id key="subject" isWhole value={subject} />] as const]),
        ...(requestId === ""
          ? []
          : [[common.requestId, <Id key="request" isWhole value={requestId} />] as const]),
      ]}
    />
  );
}

function Changes({ entry }: { entry: AuditEntry }) {
  const { audit: text } = useText();
  const names = factNames(entry);
  if (names.length === 0) return null;
  const { before, after } = entry;
  return (
    <section>
      <h3 className="mb-3 font-semibold">{text.change}</h3>
      <div
        role="region"
        aria-label={text.change}
        tabIndex={0}
        className="overflow-x-auto rounded-xl border border-line"
      >
        <table className="w-full text-left text-[0.8125rem]">
          <thead>
            <tr className="border-b border-line text-xs text-muted">
              <th scope="col" className="px-3 py-2 font-medium">
                <span className="sr-only">{text.change}</span>
              </th>
              {before !== undefined && (
                <th scope="col" className="px-3 py-2 font-medium">
                  {text.before}
                </th>
              )}
              {after !== undefined && (
                <th scope="col" className="px-3 py-2 font-medium">
                  {text.after}
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name} className="border-b border-line align-top last:border-0">
                <th scope="row" className="px-3 py-2 font-mono text-xs font-normal text-muted">
                  {name}
                </th>
                {before !== undefined && (
                  <td className="px-3 py-2 break-words">{factText(before[name])}</td>
                )}
                {after !== undefined && (
                  <td className="px-3 py-2 break-words">{factText(after[name])}</td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

type Values = Readonly<Record<string, unknown>>;

/** A value of an entry as text: strings as they are, anything else as JSON. */
function factText(value: unknown): string {
  if (isEmpty(value)) return "—";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The names of the values in an entry, before or after. */
function factNames({ before, after }: Pick<AuditEntry, "before" | "after">): string[] {
  return [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
}

/**
 * `name Alice → Bob, discountBp 0 → 500`; an entry with one side only shows the values of that
 * side.
 */
export function changeText({ before, after }: Pick<AuditEntry, "before" | "after">): string {
  const isChange = before !== undefined && after !== undefined;
  const [old, now]: readonly [Values, Values] = [before ?? {}, after ?? {}];
  return factNames({ before, after })
    .filter((name) => !isEmpty(old[name]) || !isEmpty(now[name]))
    .map((name) =>
      isChange
        ? `${name} ${factText(old[name])} → ${factText(now[name])}`
        : `${name} ${factText(now[name] ?? old[name])}`,
    )
    .join(", ");
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}
