/** E-mail address and password to sign in with. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../common/language.tsx";
import { isFreshLink, useSession } from "../common/session.tsx";
import { ActionCode } from "../ui/code-field.tsx";
import { TextField } from "../ui/field.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { MethodCard } from "./sign-in-method.tsx";

/** The shortest password, in characters. */
const passwordMin = 10;

/** Sets or changes the e-mail address and the password. */
export function PasswordCard() {
  const { settings: text } = useText();
  const { user } = useSession();
  return (
    <MethodCard
      title={text.password}
      hint={text.passwordHint}
      value={user.hasPassword ? user.email : undefined}
      change={user.hasPassword ? text.passwordChange : text.passwordSet}
      dialog={(onClose) => <PasswordDialog onClose={onClose} />}
    />
  );
}

interface Values {
  readonly email: string;
  readonly password: string;
  readonly currentPassword: string;
  readonly code: string;
}

function PasswordDialog({ onClose }: { onClose: () => void }) {
  const { settings: text, signIn, common } = useText();
  const { user, session } = useSession();
  const [form, setForm] = useState<Values>({
    email: user.email,
    password: "",
    currentPassword: "",
    code: "",
  });
  const done = useDone(onClose);
  const set = useMutation(UserService.method.setPassword, {
    onSuccess: () => done(text.passwordSaved),
  });
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
      {!isFreshLink(session) && <Proof form={form} onChange={setForm} />}
    </FormDialog>
  );
}

/** The proof of identity: the current password, else a code by SMS if there is a number. */
function Proof({ form, onChange }: { form: Values; onChange: (form: Values) => void }) {
  const { settings: text } = useText();
  const { user } = useSession();
  if (user.hasPassword) {
    return (
      <TextField
        label={text.passwordCurrent}
        type="password"
        autoComplete="current-password"
        value={form.currentPassword}
        onChange={(event) => onChange({ ...form, currentPassword: event.target.value })}
      />
    );
  }
  if (user.maskedPhone === "") return null;
  return (
    <ActionCode
      action={CodeAction.SET_PASSWORD}
      subjectId=""
      value={form.code}
      onChange={(code) => onChange({ ...form, code })}
    />
  );
}
