/** One entry of the audit log: who did what, and what changed. */
import { useQuery } from "@connectrpc/connect-query";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import type { AuditEntry } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { AccountIdLink, userName } from "../accounts/account.tsx";
import { useText } from "../common/language.tsx";
import { Facts } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { Time } from "../ui/show.tsx";

/** The details of an entry; open while there is one. */
export function EntrySheet({
  entry,
  onClose,
}: {
  entry: AuditEntry | undefined;
  onClose: () => void;
}) {
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

/** `name Alice → Bob, discountBp 0 → 500`; an entry with one side only shows the values of that side. */
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

/** The most users whose names are fetched; others are shown by their id. */
const usersMax = 1_000;

const userPrefix = "user ";

/** The display name of the actor of an entry. */
export function useActorName(): (actor: string) => string {
  const { audit: text } = useText();
  const { data } = useQuery(
    UserService.method.listUsers,
    { pageSize: usersMax },
    { staleTime: 60_000 },
  );
  const names = new Map((data?.users ?? []).map((user) => [user.userId, userName(user)]));
  return (actor) => {
    if (actor === "command line") return text.commandLine;
    if (actor === "operator token") return text.operatorToken;
    if (!actor.startsWith(userPrefix)) return actor;
    const id = actor.slice(userPrefix.length);
    return names.get(id) ?? text.someUser(id.slice(-4));
  };
}
