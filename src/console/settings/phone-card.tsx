/** The mobile number that codes are sent to. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../common/language.tsx";
import { isFreshLink, useSession } from "../common/session.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { ActionCode, codeDigits, CodeField } from "../ui/code-field.tsx";
import { TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { Badge } from "../ui/show.tsx";
import { useDone } from "../ui/toast.tsx";

/** The card. */
export function PhoneCard() {
  const { settings: text } = useText();
  const { user } = useSession();
  const [isOpen, setOpen] = useState(false);
  return (
    <Card>
      <CardHead
        title={text.phone}
        hint={text.phoneHint}
        actions={
          <Button onClick={() => setOpen(true)}>
            {user.maskedPhone === "" ? text.phoneAdd : text.phoneChange}
          </Button>
        }
      />
      <p className="px-5 pb-5">
        {user.maskedPhone === "" ? (
          <Badge tone="neutral">{text.notSet}</Badge>
        ) : (
          <span className="font-mono">{user.maskedPhone}</span>
        )}
      </p>
      {isOpen && <PhoneDialog onClose={() => setOpen(false)} />}
    </Card>
  );
}

function PhoneDialog({ onClose }: { onClose: () => void }) {
  const { settings: text, signIn, common } = useText();
  const { user, session } = useSession();
  const [phone, setPhone] = useState("");
  const [code, setCode] = useState("");
  const [currentCode, setCurrentCode] = useState("");
  const done = useDone();
  const send = useMutation(UserService.method.sendPhoneCode);
  const set = useMutation(UserService.method.setPhone, {
    onSuccess: async () => {
      onClose();
      await done(text.phoneSaved);
    },
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
          {needsProof && (
            <fieldset className="rounded-xl border border-line p-4">
              <legend className="px-1 text-[0.8125rem] font-medium">{text.phoneProof}</legend>
              <ActionCode
                action={CodeAction.CHANGE_PHONE}
                subjectId=""
                value={currentCode}
                onChange={setCurrentCode}
              />
            </fieldset>
          )}
        </>
      )}
    </FormDialog>
  );
}
