/** How a user gets in: one-time sign-in links and running sessions. */
import { createClient } from "@connectrpc/connect";
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { MonitorSmartphone } from "lucide-react";
import { useState } from "react";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import type { User } from "../../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { userName } from "../accounts/account.tsx";
import { useText } from "../common/language.tsx";
import { transport } from "../common/rpc.ts";
import { SessionTable } from "../settings/sessions.tsx";
import { Empty } from "../ui/card.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { FormDialog, useAction, useDone } from "../ui/form.tsx";
import { OnceDialog } from "../ui/once-dialog.tsx";
import { ErrorNote } from "../ui/show.tsx";

const users = createClient(UserService, transport);

/** Creates a sign-in link when asked to, because a new link ends the one before, and shows it once. */
export function LinkDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const { accounts: text } = useText();
  const [link, setLink] = useState<string>();
  // No mutation: the token must not stay in the cache of queries.
  const { run, isBusy, error } = useAction(async () => {
    const { token } = await users.createSignInLink({ userId: user.userId });
    setLink(`${location.origin}/console/welcome#${token}`);
  });
  const title = text.linkTitle(userName(user));
  if (link !== undefined) {
    return (
      <OnceDialog
        title={title}
        description={text.linkHint}
        secret={link}
        label={text.linkLabel}
        onClose={onClose}
      />
    );
  }
  return (
    <FormDialog
      onClose={onClose}
      title={title}
      description={text.linkText}
      onSubmit={run}
      submit={text.linkConfirm}
      isBusy={isBusy}
      error={error}
    />
  );
}

/** The sessions of a user, each with a button that ends it; open while there is a user. */
export function SessionsSheet({ user, onClose }: { user: User | undefined; onClose: () => void }) {
  const { accounts: text, settings } = useText();
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
