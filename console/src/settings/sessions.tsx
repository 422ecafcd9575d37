/** The sessions of a user. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import type { ReactNode } from "react";
import { type Session, SignInMethod } from "../../../gen/uas/account/v1/session_pb.ts";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { type Texts, useText } from "../common/language.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { useDone } from "../ui/form.tsx";
import { Badge, ErrorNote } from "../ui/show.tsx";
import { agoColumn, type Column, Table } from "../ui/table.tsx";

/** The user's sessions, with buttons that end one or all others. */
export function SessionsCard() {
  const { settings: text } = useText();
  const { data, error } = useQuery(SessionService.method.listSessions, {});
  const done = useDone();
  const revoke = useMutation(SessionService.method.revokeSession, {
    onSuccess: () => done(text.sessionEnded),
  });
  const others = useMutation(SessionService.method.revokeOtherSessions, {
    onSuccess: ({ revokedCount }) => done(text.sessionsEnded(revokedCount)),
  });
  return (
    <Card>
      <CardHead
        title={text.sessions}
        hint={text.sessionsHint}
        actions={
          (data?.sessions.length ?? 0) > 1 && (
            <Button isBusy={others.isPending} onClick={() => others.mutate({})}>
              {text.endOthers}
            </Button>
          )
        }
      />
      <ErrorNote error={error ?? revoke.error ?? others.error} />
      <SessionTable sessions={data?.sessions} onEnd={(sessionId) => revoke.mutate({ sessionId })} />
    </Card>
  );
}

const methodNames: Readonly<Record<SignInMethod, keyof Texts["settings"]["methods"]>> = {
  [SignInMethod.UNSPECIFIED]: "code",
  [SignInMethod.CODE]: "code",
  [SignInMethod.PASSWORD]: "password",
  [SignInMethod.LINK]: "link",
};

/** A list of sessions, each with a button that ends it. */
export function SessionTable({
  sessions,
  onEnd,
  empty = null,
}: {
  /** `undefined` while they are loaded. */
  sessions: readonly Session[] | undefined;
  onEnd: (sessionId: string) => void;
  /** Shown if there are no sessions. Nothing by default. */
  empty?: ReactNode;
}) {
  const { settings: text, common } = useText();
  const columns: Column<Session>[] = [
    {
      id: "agent",
      title: text.browser,
      cell: ({ userAgent, isCurrent }) => (
        <span className="flex flex-wrap items-center gap-2">
          <span title={userAgent}>{browserOf(userAgent)}</span>
          {isCurrent && <Badge tone="good">{text.current}</Badge>}
        </span>
      ),
    },
    { id: "address", title: text.address, from: "md", cell: ({ ipAddress }) => ipAddress },
    {
      id: "method",
      title: text.method,
      from: "lg",
      cell: ({ method }) => text.methods[methodNames[method] ?? "code"],
    },
    agoColumn({
      id: "began",
      title: text.signedIn,
      from: "sm",
      time: ({ createTime }) => createTime,
    }),
    agoColumn({ id: "seen", title: text.lastSeen, time: ({ seenTime }) => seenTime }),
    {
      id: "end",
      title: common.actionsColumn,
      isTight: true,
      cell: ({ sessionId, isCurrent }) =>
        !isCurrent && <Button onClick={() => onEnd(sessionId)}>{text.end}</Button>,
    },
  ];
  return (
    <Table
      label={text.sessions}
      columns={columns}
      rows={sessions}
      keyOf={({ sessionId }) => sessionId}
      empty={empty}
    />
  );
}

/** `Chrome · Linux`, from a `user-agent` header. */
function browserOf(agent: string): string {
  const browser = /(Edg|OPR|Firefox|Chrome|Safari)\//.exec(agent)?.[1] ?? "";
  const system = /(Windows|Mac OS X|Android|iPhone|iPad|Linux)/.exec(agent)?.[1] ?? "";
  const names: Readonly<Record<string, string>> = {
    Edg: "Edge",
    OPR: "Opera",
    "Mac OS X": "macOS",
  };
  const told = [browser, system].filter((each) => each !== "").map((each) => names[each] ?? each);
  return told.join(" · ") || agent.slice(0, 40) || "—";
}
