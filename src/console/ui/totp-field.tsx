/** The field for the code of an authenticator. */
import { useText } from "../language.tsx";
import { TextField } from "./field.tsx";

/** The code of an authenticator. */
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
