/** E-mail address and password to sign in with. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../common/language.tsx";
import { isFreshLink, useSession } from "../common/session.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { ActionCode } from "../ui/code-field.tsx";
import { TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Badge } from "../ui/show.tsx";
import { useDone } from "../ui/toast.tsx";

/** The least that a password has, in characters. */
const passwordMin = 10;

/** The card. */
export function PasswordCard() {
  const { settings: text } = useText();
  const { user } = useSession();
  const [isOpen, setOpen] = useState(false);
  return (
    <Card>
      <CardHead
        title={text.password}
        hint={text.passwordHint}
        actions={
          <Button onClick={() => setOpen(true)}>
            {user.hasPassword ? text.passwordChange : text.passwordSet}
          </Button>
        }
      />
      <p className="px-5 pb-5">
        {user.hasPassword ? user.email : <Badge tone="neutral">{text.notSet}</Badge>}
      </p>
      {isOpen && <PasswordDialog onClose={() => setOpen(false)} />}
    </Card>
  );
}

function PasswordDialog({ onClose }: { onClose: () => void }) {
  const { settings: text, signIn, common } = useText();
  const { user, session } = useSession();
  const [form, setForm] = useState({
    email: user.email,
    password: "",
    currentPassword: "",
    code: "",
  });
  const done = useDone();
  const set = useMutation(UserService.method.setPassword, {
    onSuccess: async () => {
      onClose();
      await done(text.passwordSaved);
    },
  });
  const isFresh = isFreshLink(session);
  return (
    <FormDialog
      onClose={onClose}
      title={text.password}
      description={text.passwordNote}
      onSubmit={() => set.mutate(form)}
      submit={common.save}
      isBusy={set.isPending}
      error={set.error}
    >
      <TextField
        label={signIn.email}
        type="email"
        autoComplete="username"
        required
        value={form.email}
        onChange={(event) => setForm({ ...form, email: event.target.value })}
      />
      <TextField
        label={text.passwordNew}
        hint={text.passwordLength(passwordMin)}
        type="password"
        autoComplete="new-password"
        minLength={passwordMin}
        required
        value={form.password}
        onChange={(event) => setForm({ ...form, password: event.target.value })}
      />
      {!isFresh && user.hasPassword && (
        <TextField
          label={text.passwordCurrent}
          type="password"
          autoComplete="current-password"
          value={form.currentPassword}
          onChange={(event) => setForm({ ...form, currentPassword: event.target.value })}
        />
      )}
      {!isFresh && !user.hasPassword && user.maskedPhone !== "" && (
        <ActionCode
          action={CodeAction.SET_PASSWORD}
          subjectId=""
          value={form.code}
          onChange={(code) => setForm({ ...form, code })}
        />
      )}
    </FormDialog>
  );
}
