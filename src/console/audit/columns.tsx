/** The columns of the audit log. */
import type { AuditEntry } from "../../../gen/uas/operator/v1/operator_pb.ts";
import type { Texts } from "../language.tsx";
import { msOf, timeText } from "../time.ts";
import { Time } from "../ui/show.tsx";
import { type Column, RowButton } from "../ui/table.tsx";
import { changeText } from "./change-text.ts";

/** The columns. */
export function auditColumns({
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
