/** Where one is signed in, and how to end that. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { useText } from "../language.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { SessionTable } from "./session-table.tsx";
import { useDone } from "./use-done.ts";

/** The card. */
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
