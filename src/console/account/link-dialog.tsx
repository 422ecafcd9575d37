/** The dialog that makes a link to sign in with. The link exists in it and nowhere else. */
import { createClient } from "@connectrpc/connect";
import { useState } from "react";
import type { User } from "../../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../language.tsx";
import { transport } from "../rpc.ts";
import { Button } from "../ui/button.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { userName } from "./user-name.ts";

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
