/** Fields for codes: by SMS for a sign-in or a sensitive action, or from an authenticator app. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { useMutation } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { FlaskConical } from "lucide-react";
import { useEffect, useState } from "react";
import type { CodeAction, SentCode } from "../../../gen/uas/account/v1/session_pb.ts";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useSession } from "../common/session.tsx";
import { Button, buttonClass } from "./button.tsx";
import { TextField } from "./field.tsx";
import { ErrorNote } from "./show.tsx";
import { millis } from "../common/contract.ts";

/** The number of digits in a code by SMS. */
export const codeDigits = 7;

/** The field for a code by SMS, and a button that sends a new one. */
export function CodeField({
  sent,
  value,
  onChange,
  onResend,
  isSending,
  error,
}: {
  sent: SentCode;
  value: string;
  onChange: (value: string) => void;
  onResend: () => void;
  isSending: boolean;
  error?: string | undefined;
}) {
  const { signIn } = useText();
  return (
    <div className="flex flex-col gap-3">
      {sent.developmentCode !== "" && (
        <p className="flex items-center gap-2 rounded-lg bg-warn-soft px-3 py-2 text-[0.8125rem] text-warn">
          <FlaskConical aria-hidden="true" className="size-4 shrink-0" />
          <span>
            {signIn.developmentCode}{" "}
            <strong className="font-mono" data-testid="development-code">
              {sent.developmentCode}
            </strong>
          </span>
        </p>
      )}
      <TextField
        label={signIn.code}
        hint={signIn.codeDigits}
        error={error}
        value={value}
        onChange={(event) =>
          onChange(event.target.value.replaceAll(/\D/g, "").slice(0, codeDigits))
        }
        inputMode="numeric"
        autoComplete="one-time-code"
        autoFocus
        required
        className="h-11 text-center font-mono text-lg tracking-[0.4em]"
      />
      <Resend sent={sent} onResend={onResend} isSending={isSending} />
    </div>
  );
}

function Resend({
  sent,
  onResend,
  isSending,
}: {
  sent: SentCode;
  onResend: () => void;
  isSending: boolean;
}) {
  const { signIn } = useText();
  const seconds = useCountdown(sent);
  return (
    <Button
      tone="quiet"
      className="self-start"
      disabled={seconds > 0}
      isBusy={isSending}
      onClick={onResend}
    >
      {seconds > 0 ? signIn.resendIn(seconds) : signIn.resend}
    </Button>
  );
}

/** Seconds until a new code can be sent. */
function useCountdown({ resendDelay, expireTime }: SentCode): number {
  const resendSeconds = millis(resendDelay) / 1_000;
  const id = expireTime === undefined ? 0 : timestampDate(expireTime).getTime();
  const [left, setLeft] = useState({ id, seconds: resendSeconds });
  // A new code was sent: the countdown restarts.
  if (left.id !== id) setLeft({ id, seconds: resendSeconds });
  useEffect(() => {
    const timer = setInterval(
      () => setLeft((now) => ({ ...now, seconds: Math.max(0, now.seconds - 1) })),
      1_000,
    );
    return () => clearInterval(timer);
  }, []);
  return left.seconds;
}

/**
 * The field for a code for one action on one object. The code is sent on a click only, not when a
 * dialog opens.
 */
export function ActionCode({
  action,
  subjectId,
  value,
  onChange,
}: {
  action: CodeAction;
  subjectId: string;
  value: string;
  onChange: (code: string) => void;
}) {
  const { code: text } = useText();
  const { user } = useSession();
  const send = useMutation(SessionService.method.sendActionCode);
  const ask = (): void => send.mutate({ action, subjectId });
  const sent = send.data?.sent;
  if (user.maskedPhone === "") {
    return (
      <div className="flex flex-col items-start gap-3">
        <p>{text.noPhone}</p>
        <Link to="/settings" className={buttonClass("primary")}>
          {text.toSettings}
        </Link>
      </div>
    );
  }
  if (sent === undefined) {
    return (
      <div className="flex flex-col items-start gap-3">
        <p className="text-muted">{text.prove(user.maskedPhone)}</p>
        <Button tone="primary" isBusy={send.isPending} onClick={ask}>
          {text.send}
        </Button>
        <ErrorNote error={send.error} />
      </div>
    );
  }
  return (
    <>
      <CodeField
        sent={sent}
        value={value}
        onChange={onChange}
        onResend={ask}
        isSending={send.isPending}
      />
      <ErrorNote error={send.error} />
    </>
  );
}

/** The field for the code of an authenticator app. */
export function TotpField({
  value,
  onChange,
}: {
  value: string;
  onChange: (value: string) => void;
}) {
  const { signIn } = useText();
  return (
    <TextField
      label={signIn.totp}
      hint={signIn.totpHint}
      value={value}
      onChange={(event) => onChange(event.target.value.replaceAll(/\D/g, "").slice(0, 6))}
      inputMode="numeric"
      autoComplete="one-time-code"
      autoFocus
      required
    />
  );
}
