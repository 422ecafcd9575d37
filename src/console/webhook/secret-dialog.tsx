/** What is done with the secret of webhooks, each after a code by SMS. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import type { WebhookSecret } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../language.tsx";
import { useAccountId } from "../session.tsx";
import { ActionCode } from "../ui/action-code.tsx";
import { Button } from "../ui/button.tsx";
import { codeDigits } from "../ui/code-field.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { CheckField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { Secrets } from "./secrets.tsx";

/** What can be done. */
export type Deed = "reveal" | "rotate" | "promote";

const actions: Readonly<Record<Deed, CodeAction>> = {
  reveal: CodeAction.REVEAL_WEBHOOK_SECRET,
  rotate: CodeAction.ROTATE_WEBHOOK_SECRET,
  promote: CodeAction.ROTATE_WEBHOOK_SECRET,
};

/** The dialog. */
export function SecretDialog({ deed, onClose }: { deed: Deed; onClose: () => void }) {
  const { webhooks: text } = useText();
  const [shown, setShown] = useState<WebhookSecret>();
  const titles = { reveal: text.revealTitle, rotate: text.rotateTitle, promote: text.promoteTitle };
  if (shown === undefined) {
    return <ProveDialog deed={deed} title={titles[deed]} onClose={onClose} onDone={setShown} />;
  }
  return (
    <Dialog
      isOpen
      isSticky
      width="wide"
      onClose={onClose}
      title={titles[deed]}
      footer={
        <Button tone="primary" onClick={onClose}>
          {text.done}
        </Button>
      }
    >
      <Secrets isWhole secret={shown} />
    </Dialog>
  );
}

function ProveDialog({
  deed,
  title,
  onClose,
  onDone,
}: {
  deed: Deed;
  title: string;
  onClose: () => void;
  onDone: (secret: WebhookSecret | undefined) => void;
}) {
  const { webhooks: text } = useText();
  const accountId = useAccountId();
  const queries = useQueryClient();
  const [code, setCode] = useState("");
  const [dropOld, setDropOld] = useState(false);
  const onSuccess = async ({ secret }: { secret?: WebhookSecret | undefined }): Promise<void> => {
    onDone(secret);
    await queries.invalidateQueries();
  };
  // What is shown lives in the dialog only: nothing of it stays in the memory of queries.
  const reveal = useMutation(WebhookService.method.getSecret, { onSuccess, gcTime: 0 });
  const rotate = useMutation(WebhookService.method.rotateSecret, { onSuccess, gcTime: 0 });
  const promote = useMutation(WebhookService.method.promoteSecret, { onSuccess, gcTime: 0 });
  const { error, isPending } = { reveal, rotate, promote }[deed];
  const submit = (): void => {
    if (deed === "reveal") reveal.mutate({ accountId, code });
    if (deed === "rotate") rotate.mutate({ accountId, code });
    if (deed === "promote") promote.mutate({ accountId, code, dropOld });
  };
  const notes = { reveal: undefined, rotate: text.rotateNote, promote: text.promoteNote };
  return (
    <FormDialog
      onClose={onClose}
      title={title}
      description={notes[deed]}
      onSubmit={submit}
      submit={text.proceed}
      isBusy={isPending}
      canSubmit={code.length === codeDigits}
      error={error}
    >
      <ActionCode action={actions[deed]} subjectId={accountId} value={code} onChange={setCode} />
      {deed === "promote" && (
        <CheckField
          label={text.dropOld}
          checked={dropOld}
          onChange={(event) => setDropOld(event.target.checked)}
        />
      )}
    </FormDialog>
  );
}
