/** The mobile number that codes are sent to. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../common/language.tsx";
import { isFreshLink, useSession } from "../common/session.tsx";
import { ActionCode, codeDigits, CodeField } from "../ui/code-field.tsx";
import { TextField } from "../ui/field.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { MethodCard } from "./sign-in-method.tsx";

/** Adds or changes the mobile number. */
export function PhoneCard() {
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

/** The code to the current number. The number cannot be replaced without it. */
function CurrentNumber({ code, onChange }: { code: string; onChange: (code: string) => void }) {
  const { settings: text } = useText();
  return (
    <fieldset className="rounded-xl border border-line p-4">
      <legend className="px-1 text-[0.8125rem] font-medium">{text.phoneProof}</legend>
      <ActionCode action={CodeAction.CHANGE_PHONE} subjectId="" value={code} onChange={onChange} />
    </fieldset>
  );
}
