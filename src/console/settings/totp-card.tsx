/** A second step at the sign-in: the codes of an authenticator app. */
import { useMutation } from "@connectrpc/connect-query";
import { type FormEvent, useState } from "react";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../language.tsx";
import { useSession } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { CodeBlock } from "../ui/code.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { TotpField } from "../ui/totp-field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { useDone } from "./use-done.ts";

/** The card. */
export function TotpCard() {
  const { settings: text } = useText();
  const { user } = useSession();
  const [isOpen, setOpen] = useState(false);
  return (
    <Card>
      <CardHead
        title={text.totp}
        hint={text.totpHint}
        actions={
          <Button onClick={() => setOpen(true)}>
            {user.hasTotp ? text.totpRemove : text.totpAdd}
          </Button>
        }
      />
      <p className="px-5 pb-5">
        <Badge tone={user.hasTotp ? "good" : "neutral"}>
          {user.hasTotp ? text.totpOn : text.notSet}
        </Badge>
      </p>
      {isOpen &&
        (user.hasTotp ? (
          <RemoveDialog onClose={() => setOpen(false)} />
        ) : (
          <AddDialog onClose={() => setOpen(false)} />
        ))}
    </Card>
  );
}

function AddDialog({ onClose }: { onClose: () => void }) {
  const { settings: text, common } = useText();
  const [code, setCode] = useState("");
  const done = useDone();
  const start = useMutation(UserService.method.startTotp, { gcTime: 0 });
  const confirm = useMutation(UserService.method.confirmTotp, {
    onSuccess: async () => {
      onClose();
      await done(text.totpAdded);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    confirm.mutate({ code });
  };
  return (
    <Dialog isOpen onClose={onClose} title={text.totp} description={text.totpExplain}>
      {start.data === undefined ? (
        <div className="flex flex-col gap-3">
          <Button
            tone="primary"
            size="medium"
            isBusy={start.isPending}
            onClick={() => start.mutate({})}
          >
            {text.totpStart}
          </Button>
          <ErrorNote error={start.error} />
        </div>
      ) : (
        <form onSubmit={submit} className="flex flex-col gap-4">
          <p className="text-muted">{text.totpType}</p>
          <CodeBlock label={text.totpSecret} code={start.data.secret} />
          <a href={start.data.uri} className={buttonClass()}>
            {text.totpOpen}
          </a>
          <TotpField value={code} onChange={setCode} />
          <ErrorNote error={confirm.error} />
          <Button type="submit" tone="primary" size="medium" isBusy={confirm.isPending}>
            {common.save}
          </Button>
        </form>
      )}
    </Dialog>
  );
}

function RemoveDialog({ onClose }: { onClose: () => void }) {
  const { settings: text } = useText();
  const [code, setCode] = useState("");
  const done = useDone();
  const remove = useMutation(UserService.method.removeTotp, {
    onSuccess: async () => {
      onClose();
      await done(text.totpRemoved);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    remove.mutate({ code });
  };
  return (
    <Dialog isOpen onClose={onClose} title={text.totpRemove} description={text.totpRemoveNote}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <TotpField value={code} onChange={setCode} />
        <ErrorNote error={remove.error} />
        <Button type="submit" tone="danger" size="medium" isBusy={remove.isPending}>
          {text.totpRemove}
        </Button>
      </form>
    </Dialog>
  );
}
