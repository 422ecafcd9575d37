/** Where a person is signed in. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { MonitorSmartphone } from "lucide-react";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import type { User } from "../../../gen/uas/account/v1/user_pb.ts";
import { useText } from "../language.tsx";
import { SessionTable } from "../settings/session-table.tsx";
import { useDone } from "../settings/use-done.ts";
import { Empty } from "../ui/card.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { userName } from "./user-name.ts";

/** The sheet; open while there is a user. */
export function SessionsSheet({ user, onClose }: { user: User | undefined; onClose: () => void }) {
  const {
    operator: { accounts: text },
    settings,
  } = useText();
  const { data, error } = useQuery(
    SessionService.method.listSessions,
    user === undefined ? skipToken : { userId: user.userId },
  );
  const done = useDone();
  const revoke = useMutation(SessionService.method.revokeSession, {
    onSuccess: () => done(settings.sessionEnded),
  });
  return (
    <Sheet
      isOpen={user !== undefined}
      onClose={onClose}
      title={user && text.sessionsTitle(userName(user))}
    >
      <ErrorNote error={error ?? revoke.error} />
      <SessionTable
        sessions={data?.sessions}
        onEnd={(sessionId) => revoke.mutate({ sessionId })}
        empty={<Empty icon={<MonitorSmartphone />} title={text.noSessions} />}
      />
    </Sheet>
  );
}
