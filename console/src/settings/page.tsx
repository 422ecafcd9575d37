/** Settings of the signed-in user: profile, sign-in methods, sessions. */
import { useMutation } from "@connectrpc/connect-query";
import { type ReactNode, useState } from "react";
import { encode } from "uqr";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../common/language.tsx";
import { isFreshLink, useSession } from "../common/session.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, CardHead, Facts, PageHead } from "../ui/card.tsx";
import { ActionCode, codeDigits, CodeField, TotpField } from "../ui/code-field.tsx";
import { CodeBlock, Id } from "../ui/code.tsx";
import { TextField } from "../ui/field.tsx";
import { Form, FormDialog, useDone } from "../ui/form.tsx";
import { Badge, ErrorNote } from "../ui/show.tsx";
import { SessionsCard } from "./sessions.tsx";

/** `/settings`. */
export function SettingsPage() {
  const { settings } = useText();
  return (
    <>
      <PageHead title={settings.title} hint={settings.hint} />
      <div className="flex flex-col gap-6">
        <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
          <ProfileCard />
          <div className="flex flex-col gap-6">
            <PhoneCard />
            <PasswordCard />
            <TotpCard />
          </div>
        </div>
        <SessionsCard />
      </div>
    </>
  );
}

/** The names of the user and of the account. */
function ProfileCard() {
  const { settings: text, common } = useText();
  const { user, account } = useSession();
  const [name, setName] = useState(user.name);
  const [accountName, setAccountName] = useState(account.name);
  const done = useDone();
  const changeUser = useMutation(UserService.method.updateUser);
  const changeAccount = useMutation(AccountService.method.updateAccount);
  const save = async (): Promise<void> => {
    const updateMask = { paths: ["name"] };
    if (name !== user.name) await changeUser.mutateAsync({ user: { name }, updateMask });
    if (accountName !== account.name) {
      const { accountId } = account;
      await changeAccount.mutateAsync({ account: { accountId, name: accountName }, updateMask });
    }
    await done(text.saved);
  };
  return (
    <Card>
      <CardHead title={text.profile} />
      <Form
        className="flex flex-col gap-4 px-5 pb-5"
        onSubmit={() => void save().catch(() => undefined)}
      >
        <TextField
          label={text.name}
          value={name}
          maxLength={200}
          autoComplete="name"
          onChange={(event) => setName(event.target.value)}
        />
        <TextField
          label={text.accountName}
          value={accountName}
          maxLength={200}
          required
          onChange={(event) => setAccountName(event.target.value)}
        />
        <Facts rows={[[text.accountId, <Id key="id" value={account.accountId} />]]} />
        <ErrorNote error={changeUser.error ?? changeAccount.error} />
        <Button
          type="submit"
          className="self-start"
          isBusy={changeUser.isPending || changeAccount.isPending}
          disabled={name === user.name && accountName === account.name}
        >
          {common.save}
        </Button>
      </Form>
    </Card>
  );
}

// E-mail address and password to sign in with.

/** The shortest password, in characters. */
const passwordMin = 10;

/** Sets or changes the e-mail address and the password. */
function PasswordCard() {
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

// The mobile number that codes are sent to.

/** Adds or changes the mobile number. */
function PhoneCard() {
  const { settings: text } = useText();
  const { maskedPhone } = useSession().user;
  return (
    <MethodCard
      title={text.phone}
      hint={text.phoneHint}
      value={maskedPhone === "" ? undefined : <span className="font-mono">{maskedPhone}</span>}
      change={maskedPhone === "" ? text.phoneAdd : text.phoneChange}
      dialog={(onClose) => <PhoneDialog onClose={onClose} />}
    />
  );
}

function PhoneDialog({ onClose }: { onClose: () => void }) {
  const { settings: text, signIn, common } = useText();
  const { user, session } = useSession();
  const [phone, setPhone] = useState("");
  const [code, setCode] = useState("");
  const [currentCode, setCurrentCode] = useState("");
  const done = useDone(onClose);
  const send = useMutation(UserService.method.sendPhoneCode);
  const set = useMutation(UserService.method.setPhone, {
    onSuccess: () => done(text.phoneSaved),
  });
  const needsProof = user.maskedPhone !== "" && !isFreshLink(session);
  const sent = send.data?.sent;
  const submit = (): void => {
    if (sent === undefined) send.mutate({ phone });
    else set.mutate({ phone, code, currentCode });
  };
  const isReady =
    sent === undefined ||
    (code.length === codeDigits && (!needsProof || currentCode.length === codeDigits));
  return (
    <FormDialog
      onClose={onClose}
      title={text.phone}
      onSubmit={submit}
      submit={sent === undefined ? signIn.send : common.save}
      isBusy={send.isPending || set.isPending}
      canSubmit={isReady}
      error={send.error ?? set.error}
    >
      {sent === undefined ? (
        <TextField
          label={signIn.phone}
          hint={signIn.phoneHint}
          value={phone}
          type="tel"
          autoComplete="tel"
          autoFocus
          required
          onChange={(event) => setPhone(event.target.value)}
        />
      ) : (
        <>
          <p className="text-muted">{signIn.codeHint(sent.maskedPhone)}</p>
          <CodeField
            sent={sent}
            value={code}
            onChange={setCode}
            onResend={() => send.mutate({ phone })}
            isSending={send.isPending}
          />
          {needsProof && <CurrentNumber code={currentCode} onChange={setCurrentCode} />}
        </>
      )}
    </FormDialog>
  );
}

/** The code to the current number, without which it is not replaced. */
function CurrentNumber({ code, onChange }: { code: string; onChange: (code: string) => void }) {
  const { settings: text } = useText();
  return (
    <fieldset className="rounded-xl border border-line p-4">
      <legend className="px-1 text-[0.8125rem] font-medium">{text.phoneProof}</legend>
      <ActionCode action={CodeAction.CHANGE_PHONE} subjectId="" value={code} onChange={onChange} />
    </fieldset>
  );
}

// Two-factor authentication with an authenticator app.

/** Sets up or removes the authenticator app. */
function TotpCard() {
  const { settings: text } = useText();
  const { hasTotp } = useSession().user;
  return (
    <MethodCard
      title={text.totp}
      hint={text.totpHint}
      value={hasTotp ? <Badge tone="good">{text.totpOn}</Badge> : undefined}
      change={hasTotp ? text.totpRemove : text.totpAdd}
      dialog={(onClose) =>
        hasTotp ? <RemoveDialog onClose={onClose} /> : <AddDialog onClose={onClose} />
      }
    />
  );
}

function AddDialog({ onClose }: { onClose: () => void }) {
  const { settings: text, common } = useText();
  const [code, setCode] = useState("");
  const done = useDone(onClose);
  const start = useMutation(UserService.method.startTotp, { gcTime: 0 });
  const confirm = useMutation(UserService.method.confirmTotp, {
    onSuccess: () => done(text.totpAdded),
  });
  const started = start.data;
  return (
    <FormDialog
      onClose={onClose}
      title={text.totp}
      description={text.totpExplain}
      onSubmit={() => (started === undefined ? start.mutate({}) : confirm.mutate({ code }))}
      submit={started === undefined ? text.totpStart : common.save}
      isBusy={start.isPending || confirm.isPending}
      error={start.error ?? confirm.error}
    >
      {started !== undefined && (
        <>
          <p className="text-muted">{text.totpType}</p>
          <div className="flex flex-wrap items-center justify-center gap-4">
            <QrCode text={started.uri} label={text.totpQr} />
            <a href={started.uri} className={buttonClass()}>
              {text.totpOpen}
            </a>
          </div>
          <CodeBlock label={text.totpSecret} code={started.secret} />
          <TotpField value={code} onChange={setCode} />
        </>
      )}
    </FormDialog>
  );
}

function RemoveDialog({ onClose }: { onClose: () => void }) {
  const { settings: text } = useText();
  const [code, setCode] = useState("");
  const done = useDone(onClose);
  const remove = useMutation(UserService.method.removeTotp, {
    onSuccess: () => done(text.totpRemoved),
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.totpRemove}
      description={text.totpRemoveNote}
      onSubmit={() => remove.mutate({ code })}
      submit={text.totpRemove}
      tone="danger"
      isBusy={remove.isPending}
      error={remove.error}
    >
      <TotpField value={code} onChange={setCode} />
    </FormDialog>
  );
}

/** The light margin that cameras need, in modules, as ISO/IEC 18004 requires. */
const quietModules = 4;

/**
 * A text as a QR code, dark on light in both themes, because not every app reads the reverse. Without inline styles, which
 * the security policy of the pages forbids.
 */
function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { ecc: "M", border: quietModules });
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="size-52 max-w-full shrink-0 rounded-lg border border-line"
    >
      <rect width={size} height={size} className="fill-white" />
      <path d={pathOf(data)} className="fill-black" />
    </svg>
  );
}

/** The dark modules: a rectangle for each run of them in a row. */
function pathOf(rows: readonly (readonly boolean[])[]): string {
  return rows
    .flatMap((row, y) =>
      [
        ...row
          .map((isDark) => (isDark ? "1" : "0"))
          .join("")
          .matchAll(/1+/g),
      ].map(({ index, 0: run }) => `M${index} ${y}h${run.length}v1h-${run.length}z`),
    )
    .join("");
}

// A sign-in method of the settings: what it is, what is set, and the dialog that changes it.

/** Shows what is set, and opens `dialog`, which exists only while it is open. */
function MethodCard({
  title,
  hint,
  value,
  change,
  dialog,
}: {
  title: string;
  hint: string;
  /** What is set. Default: "Not set". */
  value: ReactNode;
  /** The text of the button. */
  change: string;
  dialog: (onClose: () => void) => ReactNode;
}) {
  const { settings: text } = useText();
  const [isOpen, setOpen] = useState(false);
  return (
    <Card>
      <CardHead
        title={title}
        hint={hint}
        actions={<Button onClick={() => setOpen(true)}>{change}</Button>}
      />
      <p className="px-5 pb-5">{value ?? <Badge tone="neutral">{text.notSet}</Badge>}</p>
      {isOpen && dialog(() => setOpen(false))}
    </Card>
  );
}
