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
import { Button } from "../ui/button.tsx";
import { Empty } from "../ui/card.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Dialog, Sheet } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { useDone } from "../ui/toast.tsx";

const users = createClient(UserService, transport);

/** The dialog. Makes the link when it is asked to, for a new link ends the one before. */
export function LinkDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const {
    operator: { accounts: text },
    common,
  } = useText();
  const [link, setLink] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  // Past the memory of queries, which must not keep the token.
  const make = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const { token } = await users.createSignInLink({ userId: user.userId });
      setLink(`${location.origin}/console/welcome#${token}`);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return (
    <Dialog
      isOpen
      isSticky={link !== undefined}
      onClose={onClose}
      title={text.linkTitle(userName(user))}
      description={link === undefined ? text.linkText : text.linkHint}
      footer={
        link === undefined ? (
          <>
            <Button onClick={onClose}>{common.cancel}</Button>
            <Button tone="primary" isBusy={isBusy} onClick={() => void make()}>
              {text.linkMake}
            </Button>
          </>
        ) : (
          <Button tone="primary" onClick={onClose}>
            {common.close}
          </Button>
        )
      }
    >
      {link !== undefined && (
        <div className="flex items-end gap-2">
          <div className="min-w-0 flex-1">
            <TextField
              readOnly
              autoFocus
              label={text.linkLabel}
              value={link}
              onFocus={(event) => event.target.select()}
              className="font-mono text-xs"
            />
          </div>
          <CopyButton text={link} />
        </div>
      )}
      <ErrorNote error={error} />
    </Dialog>
  );
}

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
