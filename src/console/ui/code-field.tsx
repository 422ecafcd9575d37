/** Codes that come by SMS: asked for by a button, typed in one field that phones fill by themselves. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { FlaskConical } from "lucide-react";
import { useEffect, useState } from "react";
import type { SentCode } from "../../../gen/uas/account/v1/session_pb.ts";
import { useText } from "../language.tsx";
import { Button } from "./button.tsx";
import { TextField } from "./field.tsx";
import { millis } from "../duration.ts";

/** How many digits a code has. */
export const codeDigits = 7;

/** The field for a code, and how to get another one. */
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

/** Seconds until another code can be asked for. */
function useCountdown({ resendDelay, expireTime }: SentCode): number {
  const resendSeconds = millis(resendDelay) / 1_000;
  const id = expireTime === undefined ? 0 : timestampDate(expireTime).getTime();
  const [left, setLeft] = useState({ id, seconds: resendSeconds });
  // Another code was sent: its time begins anew.
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
