/** Shows a key again, after a code by SMS. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import type { Key } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useText } from "../language.tsx";
import { ActionCode } from "../ui/action-code.tsx";
import { codeDigits } from "../ui/code-field.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";

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
  const { keys: text } = useText();
  const [code, setCode] = useState("");
  const reveal = useMutation(KeyService.method.revealKey, {
    onSuccess: ({ secret }) => onSecret(secret),
    // The secret is in the dialog that follows, and in no memory of queries.
    gcTime: 0,
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.again(apiKey.name || apiKey.masked)}
      onSubmit={() => reveal.mutate({ keyId: apiKey.keyId, code })}
      submit={text.againShow}
      isBusy={reveal.isPending}
      canSubmit={code.length === codeDigits}
      error={reveal.error}
    >
      <ActionCode
        action={CodeAction.REVEAL_KEY}
        subjectId={apiKey.keyId}
        value={code}
        onChange={setCode}
      />
    </FormDialog>
  );
}
