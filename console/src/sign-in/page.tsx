/**
 * Sign-in: with a code by SMS, with e-mail address and password, or with a one-time link. The token
 * of a link is after the `#`, which browsers do not send.
 */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Link, useRouter, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { useLanguage, useText } from "../common/language.tsx";
import { shownError } from "../common/rpc.ts";
import { SignInLayout } from "../layout/outside.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { codeDigits, CodeField, TotpField } from "../ui/code-field.tsx";
import { Segments, TextField } from "../ui/field.tsx";
import { Form } from "../ui/form.tsx";
import { ErrorNote } from "../ui/show.tsx";

type Way = "phone" | "password";

/** `/sign-in`. */
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

/** Opens the requested page, with an empty cache, so that no data of an earlier user remains. */
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

/** Whether the gateway requires the authenticator code: only then its field is shown. */
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
    <Form className="flex flex-col gap-4" onSubmit={ask}>
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
    </Form>
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
  const submit = (): void => check.mutate({ phone, code, totpCode });
  return (
    <Form className="flex flex-col gap-4" onSubmit={submit}>
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
    </Form>
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
    <Form
      className="flex flex-col gap-4"
      onSubmit={() => check.mutate({ email, password, totpCode })}
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
    </Form>
  );
}

/** `/welcome`. Uses the token at once and removes it from the address. */
export function WelcomePage() {
  const { signIn } = useText();
  const queries = useQueryClient();
  const router = useRouter();
  const { mutate, error } = useMutation(SessionService.method.signInWithLink, {
    onSuccess: () => {
      queries.clear();
      void router.navigate({ to: "/", replace: true });
    },
  });
  const [token] = useState(() => location.hash.slice(1));
  const isUsed = useRef(false);
  useEffect(() => {
    document.title = `${signIn.welcomeTitle} · UAS Gateway`;
    // Effects may run twice; a token works once.
    if (token === "" || isUsed.current) return;
    isUsed.current = true;
    history.replaceState(history.state, "", location.pathname);
    mutate({ token });
  }, [mutate, token, signIn.welcomeTitle]);
  const isMissing = token === "";
  if (error === null && !isMissing) {
    return (
      <SignInLayout>
        <div role="status" className="text-center">
          <h1 className="text-xl font-semibold tracking-tight">{signIn.welcomeTitle}</h1>
          <p className="mt-1 text-muted">{signIn.welcomeHint}</p>
        </div>
      </SignInLayout>
    );
  }
  return (
    <SignInLayout>
      <h1 className="text-xl font-semibold tracking-tight">{signIn.linkTitle}</h1>
      <p className="mt-1 mb-4 text-muted">{isMissing ? signIn.linkMissing : signIn.linkHint}</p>
      <ErrorNote error={error} />
      <Link to="/sign-in" className={`${buttonClass("primary", "medium")} mt-4 w-full`}>
        {signIn.toSignIn}
      </Link>
    </SignInLayout>
  );
}
