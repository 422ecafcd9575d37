/** Shows a key again, after a code by SMS. */
import { useMutation } from "@connectrpc/connect-query";
import { type FormEvent, useId, useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import type { Key } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useText } from "../language.tsx";
import { ActionCode } from "../ui/action-code.tsx";
import { Button } from "../ui/button.tsx";
import { codeDigits } from "../ui/code-field.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { ErrorNote } from "../ui/show.tsx";

/** The dialog. */
export function AgainDialog({
  apiKey,
  onClose,
  onSecret,
}: {
  apiKey: Key;
  onClose: () => void;
  onSecret: (secret: string) => void;
}) {
  const { keys: text, common } = useText();
  const formId = useId();
  const [code, setCode] = useState("");
  const reveal = useMutation(KeyService.method.revealKey, {
    onSuccess: ({ secret }) => onSecret(secret),
    // The secret is in the dialog that follows, and in no memory of queries.
    gcTime: 0,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    reveal.mutate({ keyId: apiKey.keyId, code });
  };
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={text.again(apiKey.name || apiKey.masked)}
      footer={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button
            type="submit"
            form={formId}
            tone="primary"
            isBusy={reveal.isPending}
            disabled={code.length < codeDigits}
          >
            {text.againShow}
          </Button>
        </>
      }
    >
      <form id={formId} onSubmit={submit} className="flex flex-col gap-4">
        <ActionCode
          action={CodeAction.REVEAL_KEY}
          subjectId={apiKey.keyId}
          value={code}
          onChange={setCode}
        />
        <ErrorNote error={reveal.error} />
      </form>
    </Dialog>
  );
}
