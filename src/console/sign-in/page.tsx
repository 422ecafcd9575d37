/** Signing in: by a code on the phone, or by e-mail address and password. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useRouter, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { useLanguage, useText } from "../common/language.tsx";
import { shownError } from "../common/rpc.ts";
import { SignInLayout } from "../layout/outside.tsx";
import { Button } from "../ui/button.tsx";
import { codeDigits, CodeField, TotpField } from "../ui/code-field.tsx";
import { Segments, TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";

type Way = "phone" | "password";

/** The page. */
export function SignInPage() {
  const { signIn } = useText();
  const options = useQuery(SessionService.method.getSignInOptions, {});
  const [chosen, setChosen] = useState<Way>();
  useEffect(() => {
    document.title = `${signIn.title} · UAS Gateway`;
  }, [signIn.title]);
  const hasCodes = options.data?.hasCodes ?? true;
  const way = chosen ?? (hasCodes ? "phone" : "password");
  return (
    <SignInLayout>
      <h1 className="text-xl font-semibold tracking-tight">{signIn.title}</h1>
      <p className="mt-1 mb-5 text-muted">{signIn.hint}</p>
      <div className="mb-5">
        <Segments
          label={signIn.way}
          value={way}
          choices={[
            { value: "phone", label: signIn.byPhone },
            { value: "password", label: signIn.byPassword },
          ]}
          onChoose={setChosen}
        />
      </div>
      {way === "password" ? (
        <PasswordForm />
      ) : hasCodes ? (
        <PhoneForm hasSignUp={options.data?.hasSignUp ?? false} />
      ) : (
        <p className="text-muted">{signIn.noCodes}</p>
      )}
    </SignInLayout>
  );
}

/** What follows a sign-in: the page that was asked for, with nothing left of who was here before. */
function useEnter(): () => void {
  const queries = useQueryClient();
  const router = useRouter();
  const { next } = useSearch({ from: "/sign-in" });
  return () => {
    queries.clear();
    if (next === undefined) void router.navigate({ to: "/", replace: true });
    else router.history.replace(`/console${next}`);
  };
}

/** The authenticator's code is asked for only where the gateway says that it is needed. */
function needsTotp(error: unknown): boolean {
  return error !== null && shownError(error).param === "totp_code";
}

function PhoneForm({ hasSignUp }: { hasSignUp: boolean }) {
  const { signIn } = useText();
  const { language } = useLanguage();
  const [phone, setPhone] = useState("");
  const send = useMutation(SessionService.method.sendSignInCode);
  const sent = send.data?.sent;
  const ask = (): void => send.mutate({ phone, language });
  if (sent !== undefined) {
    return (
      <CodeForm
        phone={phone}
        sent={sent}
        send={{ ask, isPending: send.isPending, error: send.error }}
        onOther={send.reset}
      />
    );
  }
  return (
    <form
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        ask();
      }}
    >
      <TextField
        label={signIn.phone}
        hint={signIn.phoneHint}
        value={phone}
        onChange={(event) => setPhone(event.target.value)}
        type="tel"
        autoComplete="tel"
        autoFocus
        required
      />
      <ErrorNote error={send.error} />
      <Button type="submit" tone="primary" size="medium" isBusy={send.isPending}>
        {signIn.send}
      </Button>
      {hasSignUp && <p className="text-center text-xs text-muted">{signIn.signUpNote}</p>}
    </form>
  );
}

function CodeForm({
  phone,
  sent,
  send,
  onOther,
}: {
  phone: string;
  sent: React.ComponentProps<typeof CodeField>["sent"];
  send: { ask: () => void; isPending: boolean; error: unknown };
  onOther: () => void;
}) {
  const { signIn } = useText();
  const [code, setCode] = useState("");
  const [totpCode, setTotpCode] = useState("");
  const enter = useEnter();
  const check = useMutation(SessionService.method.signInWithCode, { onSuccess: enter });
  const hasTotp = needsTotp(check.error) || totpCode !== "";
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    check.mutate({ phone, code, totpCode });
  };
  return (
    <form className="flex flex-col gap-4" onSubmit={submit}>
      <div>
        <h2 className="font-medium">{signIn.codeTitle}</h2>
        <p className="text-muted">{signIn.codeHint(sent.maskedPhone || phone)}</p>
      </div>
      <CodeField
        sent={sent}
        value={code}
        onChange={setCode}
        onResend={send.ask}
        isSending={send.isPending}
      />
      {hasTotp && <TotpField value={totpCode} onChange={setTotpCode} />}
      <ErrorNote error={(hasTotp && totpCode === "" ? null : check.error) ?? send.error} />
      <Button
        type="submit"
        tone="primary"
        size="medium"
        isBusy={check.isPending}
        disabled={code.length < codeDigits}
      >
        {signIn.submit}
      </Button>
      <Button tone="quiet" onClick={onOther}>
        {signIn.otherNumber}
      </Button>
    </form>
  );
}

function PasswordForm() {
  const { signIn } = useText();
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [totpCode, setTotpCode] = useState("");
  const enter = useEnter();
  const check = useMutation(SessionService.method.signInWithPassword, { onSuccess: enter });
  const hasTotp = needsTotp(check.error) || totpCode !== "";
  return (
    <form
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        event.preventDefault();
        check.mutate({ email, password, totpCode });
      }}
    >
      <TextField
        label={signIn.email}
        value={email}
        onChange={(event) => setEmail(event.target.value)}
        type="email"
        autoComplete="username"
        required
      />
      <TextField
        label={signIn.password}
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        type="password"
        autoComplete="current-password"
        required
      />
      {hasTotp && <TotpField value={totpCode} onChange={setTotpCode} />}
      <ErrorNote error={hasTotp && totpCode === "" ? null : check.error} />
      <Button type="submit" tone="primary" size="medium" isBusy={check.isPending}>
        {signIn.submit}
      </Button>
    </form>
  );
}
